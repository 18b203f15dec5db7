"""The final output of a campaign, and its exit code."""

import time
from collections import Counter


def finish(counts: Counter[str], started: float) -> int:
    """Print the counts; return 1 if any name starts with WRONG, else 0."""
    wrong = sum(count for name, count in counts.items() if name.startswith("WRONG"))
    for name, count in sorted(counts.items()):
        print(f"{name}: {count}")
    print(f"{wrong} wrong, {time.perf_counter() - started:.0f} s")
    return 1 if wrong else 0
