"""Audit: a table of people asked one by one; rates, pairs, what enforcing would cost."""
