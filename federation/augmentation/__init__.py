"""Augmentation of whole batches of samples on the run's device."""
