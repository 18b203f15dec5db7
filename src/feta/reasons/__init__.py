"""Reasons: the smallest changes of a person's other columns that make a fair decision favorable."""
