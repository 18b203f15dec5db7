"""The scikit-learn interface."""
