"""Enforce: decisions that cannot depend on the sensitive attributes."""
