"""Checks certificates of `feta prove --certify`; it shares no code with feta, only NumPy."""
