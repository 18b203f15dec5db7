"""Boxes of one person's counterparts."""
