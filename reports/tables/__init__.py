"""A table's layout, units, files and claims as they are read back."""
