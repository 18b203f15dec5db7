"""Tree ensembles: sums or means of leaf values, exact in integers."""
