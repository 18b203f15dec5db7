"""Readers of models: one `read_…` function per format, each returning a Network."""
