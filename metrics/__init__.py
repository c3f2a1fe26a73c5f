"""Metrics: pure functions of predictions and truth."""
