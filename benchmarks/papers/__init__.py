"""The papers' specs: facts only, one file a paper."""

FIRST = "dlad/table2"
"""The table to begin with: it needs no files, and about two minutes."""
