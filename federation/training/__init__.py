"""Loops that train and predict on tensors in memory."""
