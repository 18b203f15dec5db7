"""Rates over many people, and proxies."""
