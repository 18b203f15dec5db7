"""Rates over many people, and associations between columns."""
