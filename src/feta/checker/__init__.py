"""The trusted core: slow, simple, and independent of engines and solvers."""
