"""Evenly spaced levels, computed in decimal.

People write levels in decimal: 0 + 3 · 0.1 means 0.3, not 0.30000000000000004.
"""

from fractions import Fraction
from functools import lru_cache

import numpy as np

from feta.arrays import Flags, Vector
from feta.errors import SchemaError
from feta.space.cell_values import to_number
from feta.space.numeric import check_order

# Nobody writes or reads a longer list of levels.
MAX_NUMBERS = 10**6


def spaced_numbers(name: str, low: float, high: float, *, step: float) -> tuple[float, ...]:
    """Return low, low + step, … up to high; `name` is the attribute's, for messages."""
    limits = [to_number(low), to_number(high), to_number(step)]
    if not np.isfinite(limits).all() or not step > 0:
        raise SchemaError(
            f"invalid levels for {name!r}: got {low!r} to {high!r} by {step!r}; "
            "expected finite limits and a step above 0"
        )
    check_order(name, low, high)
    first, last, by = (_decimal(float(number)) for number in (low, high, step))
    n_steps = int((last - first) / by)
    if n_steps >= MAX_NUMBERS:
        raise SchemaError(
            f"too many levels for {name!r}: got {n_steps} steps; expected fewer than {MAX_NUMBERS}"
        )
    return tuple(float(first + by * n) for n in range(n_steps + 1))


def on_grid(levels: tuple[float, ...], numbers: Vector) -> Flags:
    """Flag the numbers that continue evenly spaced levels; nothing continues other levels."""
    step = even_step(levels)
    if step is None:
        return np.zeros(len(numbers), dtype=bool)
    first = _decimal(levels[0])
    return np.array([_continues(first, step, number) for number in numbers.tolist()], dtype=bool)


def _continues(first: Fraction, step: Fraction, number: float) -> bool:
    return bool(np.isfinite(number)) and ((_decimal(number) - first) / step).denominator == 1


@lru_cache(maxsize=16)  # a list may have a million levels
def even_step(levels: tuple[float, ...]) -> Fraction | None:
    """Return the step between the levels; None if they are not evenly spaced."""
    if len(levels) < 2:  # noqa: PLR2004 - one level has no step
        return None
    first, step = _decimal(levels[0]), _decimal(levels[1]) - _decimal(levels[0])
    even = all(_decimal(level) == first + step * index for index, level in enumerate(levels))
    return step if even else None


def _decimal(number: float) -> Fraction:
    return Fraction(repr(number))
