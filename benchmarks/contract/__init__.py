"""The contract that every method keeps: what it promises, and the fits by which that is seen."""
