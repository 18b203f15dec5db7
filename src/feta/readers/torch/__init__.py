"""The PyTorch reader."""
