"""The values that a column of one person may change to, each with its size."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from feta.arrays import Matrix, Vector
from feta.model import Model
from feta.reasons.changeable import Changeable
from feta.space.attribute import Categorical, Derived, Integer, Levels, Real, Value
from feta.space.limits import limits_of

# Without people, the spread of a number is this part of its domain.
PART_OF_DOMAIN = 0.25


@dataclass(frozen=True, slots=True, eq=False)
class Choices:
    """The other values of a column, the smallest change first."""

    column: str
    before: Value
    values: tuple[Value, ...]
    sizes: tuple[float, ...]  # of the changes
    codes: Matrix  # the encoded values


def choices_of(model: Model, person: Vector, one: Changeable, unit: float | None) -> Choices:
    """Return the values that a checked column may change to; a missing value does not change."""
    space = model.space
    attribute = space.attribute(one.column)
    assert not isinstance(attribute, Derived)  # `checked` refuses it
    before = attribute.decode(person[space.columns_of(attribute)])
    sized: list[tuple[float, Value]] = []
    if before is not None:
        if isinstance(attribute, Categorical):
            allowed = one.values or attribute.values
            sized = [(1.0, value) for value in allowed if value != before]
        else:
            assert isinstance(before, int | float)
            size = one.unit or unit or _part_of_domain(attribute)
            numbers = _numbers(attribute, one, before)
            sized = [(abs(number - before) / size, number) for number in numbers]
            sized.sort()
    values = [value for _, value in sized]
    codes = attribute.encode(values) if values else np.zeros((0, attribute.width))
    return Choices(one.column, before, tuple(values), tuple(size for size, _ in sized), codes)


def spreads(model: Model, people: Matrix) -> dict[str, float]:
    """Return the standard deviation of each number among people; constant columns are absent."""
    space = model.space
    found: dict[str, float] = {}
    for attribute in space.attributes:
        if isinstance(attribute, Integer | Levels | Real) and not space.is_sensitive(attribute):
            codes = people[:, space.columns_of(attribute)]
            numbers = codes[codes[:, -1] != 1.0, 0] if attribute.missing else codes[:, 0]
            spread = float(numbers.std()) if len(numbers) else 0.0
            if spread > 0:
                found[attribute.name] = spread
    return found


def _part_of_domain(attribute: Integer | Levels | Real) -> float:
    low, high = limits_of(attribute)
    return (high - low) * PART_OF_DOMAIN or 1.0


def _numbers(attribute: Integer | Levels | Real, one: Changeable, before: float) -> list[float]:
    """Return the numbers that are allowed, other than the person's own."""
    low, high = limits_of(attribute)
    low = low if one.low is None else max(low, one.low)
    high = high if one.high is None else min(high, one.high)
    if one.direction == "up":
        low = max(low, before)
    if one.direction == "down":
        high = min(high, before)
    if isinstance(attribute, Levels):
        numbers = list(attribute.numbers)
    else:
        assert one.step is not None
        numbers = _stepped(before, one.step, low, high)
    kept = [number for number in numbers if low <= number <= high and number != before]
    return [int(number) for number in kept] if isinstance(attribute, Integer) else kept


def _stepped(before: float, step: float, low: float, high: float) -> list[float]:
    """Return before + k·step between the limits; the sums are exact decimals, rounded once."""
    own, by, lowest, highest = (Fraction(repr(number)) for number in (before, step, low, high))
    if low > high:
        return []
    first = -((own - lowest) // by)
    last = (highest - own) // by
    return [float(own + k * by) for k in range(first, last + 1)]
