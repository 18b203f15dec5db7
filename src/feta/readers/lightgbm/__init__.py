"""Reader of LightGBM's models, from files without the library, or from objects in memory."""
