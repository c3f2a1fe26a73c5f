"""What a table is: its specification, its selection, its cells, its protocol card."""
