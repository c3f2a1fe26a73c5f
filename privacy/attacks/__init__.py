"""Attacks on what clients share."""
