"""The scikit-learn reader."""
