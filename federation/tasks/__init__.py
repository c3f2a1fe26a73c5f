"""The problems that a federation solves, one file per task."""
