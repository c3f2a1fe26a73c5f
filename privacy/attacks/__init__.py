"""Attacks on what clients share, one file each."""
