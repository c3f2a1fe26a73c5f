"""Cells are run here: one cell, the pool of workers, Ray, the plan, the verification."""
