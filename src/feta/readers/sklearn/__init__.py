"""Reader of scikit-learn estimators."""
