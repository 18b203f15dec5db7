"""Reader of any function that predicts: it is evaluated on every counterpart."""
