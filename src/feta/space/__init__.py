"""Attributes and the feature space: who can exist."""
