"""The paper's experiments: its protocol on one data set, fold by fold, and the figures."""
