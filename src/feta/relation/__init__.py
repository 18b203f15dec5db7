"""Relations: who is a counterpart of whom."""
