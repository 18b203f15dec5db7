"""The service: fair decisions over HTTP, for one frozen model at a time."""
