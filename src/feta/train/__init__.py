"""Improve: networks that are fairer by themselves, and what they are compared with."""
