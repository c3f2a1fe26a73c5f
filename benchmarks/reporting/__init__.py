"""A run told: the files of its tables, and what a terminal shows of them."""
