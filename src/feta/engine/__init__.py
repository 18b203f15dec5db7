"""Engines: search for counterexamples and proofs of fairness."""
