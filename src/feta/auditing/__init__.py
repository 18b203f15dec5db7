"""Audit of a table: one finding per person, rates, counterexamples, and the cost of enforcing."""
