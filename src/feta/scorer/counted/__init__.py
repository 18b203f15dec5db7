"""Counted models: scorers that call the user's own function on every counterpart."""
