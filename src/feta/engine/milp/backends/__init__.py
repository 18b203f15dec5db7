"""Solvers, one per file; each is imported when it is used."""
