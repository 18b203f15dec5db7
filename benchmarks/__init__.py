"""Benchmarks: plain scripts that measure side by side in one run; `PERFORMANCE.md` holds results."""
