"""Data sets: where each comes from, its official layout, what stands in for it, and how it is
partitioned.
"""
