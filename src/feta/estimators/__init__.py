"""scikit-learn clothing."""
