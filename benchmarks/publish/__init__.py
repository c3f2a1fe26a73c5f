"""What a person sees of a run: terminal tables, progress, and a table's files."""
