"""Reproduce: the paper's protocol run again, and its figures beside ours."""
