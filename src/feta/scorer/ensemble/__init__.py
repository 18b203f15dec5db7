"""Combinations of scorers: their scores through curves, then added with weights."""
