"""What is taken from a fitted federation: one file a measure."""
