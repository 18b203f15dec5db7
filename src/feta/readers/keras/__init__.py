"""The Keras reader."""
