"""Scripts that measure alternatives in one run; `PERFORMANCE.md` has the results."""
