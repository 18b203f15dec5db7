"""Reader of PyTorch modules."""
