"""Piecewise-linear networks."""
