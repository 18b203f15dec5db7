"""Reader of CatBoost's tree ensembles."""
