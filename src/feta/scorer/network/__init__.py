"""Stage 2: what decides."""
