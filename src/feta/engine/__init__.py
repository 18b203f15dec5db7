"""Stage 5: who answers."""
