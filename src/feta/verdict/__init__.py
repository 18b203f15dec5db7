"""Verdicts and their evidence."""
