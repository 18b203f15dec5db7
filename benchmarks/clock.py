"""Clock: what some work costs, at its best of a few tries; neighbors on the machine only ever add to it."""

import math
import time
from collections.abc import Callable

TRIES = 5

# A try is repeated until it lasts this long, so that the clock's own steps do not show.
SHORTEST = 0.02


def cost(
    work: Callable[[], object],
    *,
    clock: Callable[[], float] = time.process_time,
    patience: float = 10.0,
) -> float:
    """Measure seconds of some work, after a call that is not counted: the best of five tries.

    Tries end early when they have taken longer than `patience` together, in seconds.
    """
    begun = time.monotonic()
    work()
    started = clock()
    work()
    best = clock() - started
    times = max(1, math.ceil(SHORTEST / max(best, 1e-9)))
    for _ in range(TRIES if times > 1 else TRIES - 1):  # a long try has been made already
        if time.monotonic() - begun > patience:
            break
        started = clock()
        for _ in range(times):
            work()
        best = min(best, (clock() - started) / times)
    return best
