"""Training of networks that are fairer by themselves, and baselines."""
