"""Stage 1: who can exist."""
