"""Stage 6: what was answered, and the evidence."""
