"""Fair decisions: they cannot depend on the sensitive attributes."""
