"""Reader of XGBoost's models, from files without the library, or from objects in memory."""
