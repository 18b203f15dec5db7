"""Schema, table, model and journal files, and escaping of untrusted text."""
