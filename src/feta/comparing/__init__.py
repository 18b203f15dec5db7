"""Comparison of models with fairer ways to decide, on the same people."""
