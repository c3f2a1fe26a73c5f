"""The parts of a federation, by subject."""
