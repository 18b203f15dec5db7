"""Reader of statsmodels results."""
