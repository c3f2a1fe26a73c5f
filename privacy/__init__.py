"""Differential privacy: what was spent, under which conventions."""
