"""Results: the record of a run, its files on disk, and the numbers the papers print."""
