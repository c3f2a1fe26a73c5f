"""Reads results and draws tables, plots and comparisons. Knows nothing of how the numbers came
about.
"""
