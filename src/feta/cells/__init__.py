"""Boxes of sensitive values."""
