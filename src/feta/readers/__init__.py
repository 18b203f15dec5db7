"""Readers: one `read_…` a kind of model, each giving a Network."""
