"""Reader of Keras files."""
