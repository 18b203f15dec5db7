"""Reproduce: the paper's protocol on one data set, fold by fold, and every figure that comes of it."""
