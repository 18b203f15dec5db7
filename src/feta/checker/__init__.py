"""The trusted core: slow, simple, and independent of engines, bounds, scorers and solvers."""
