"""Constraints learned from a table: combinations that occur, and suggestions of what never does."""

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from feta.arrays import Counts, Flags, Matrix, Vector
from feta.conditions.condition import Linear
from feta.conditions.evaluate import Cells, cells_of
from feta.conditions.parse import parse_linear
from feta.errors import SchemaError
from feta.space.attribute import Categorical, Integer, Levels, Value
from feta.space.feature_space import FeatureSpace

# How many people a combination that never occurs would have if its columns were independent.
LEAST_EXPECTED = 50.0

# Suggestions that are shown, the most surprising first.
MAX_SUGGESTIONS = 12


def learn_support(
    space: FeatureSpace, people: Matrix, columns: Sequence[str], least: int
) -> dict[str, Any]:
    """Return the entry with all combinations of columns that at least so many people have.

    Columns are categories, numbers, or sums of numbers such as "age - years_employed". For each
    combination of categories, a number has the band of its values in the table.
    """
    if least < 1:
        raise SchemaError(f"invalid least: got {least}; expected 1 or more")
    if not columns or len(set(columns)) != len(columns):
        raise SchemaError(f"invalid columns: got {list(columns)}; expected different columns")
    cells = cells_of(space, people)
    names = [name for name in columns if name in cells and cells[name].values]
    sums = {name: _sum_of(space, name, cells, people) for name in columns if name not in names}
    present = np.ones(len(people), dtype=bool)
    for absent in [cells[name].missing for name in names] + [n.missing for _, n in sums.values()]:
        present &= ~absent
    rows = []
    for values, group in _groups([cells[name] for name in names], present):
        if group.sum() < least:
            continue
        known = dict(zip(names, values, strict=True))
        bands = {name: _band(total, one, group) for name, (total, one) in sums.items()}
        rows.append({name: known.get(name, bands.get(name)) for name in columns})
    if not rows:
        raise SchemaError(
            f"no combination of {', '.join(columns)} occurs {least} times: got {int(present.sum())}"
            " people; expected more people, fewer columns or a smaller number"
        )
    return {"support": list(columns), "least": least, "seen": rows}


def _sum_of(
    space: FeatureSpace, name: str, cells: dict[str, Cells], people: Matrix
) -> tuple[Linear, "_Numbers"]:
    total = (
        Linear.of({name: Fraction(1)}, Fraction(0))
        if name in cells
        else parse_linear(name, space.attributes)
    )
    columns = [cells[column] for column, _ in total.terms]
    missing = np.zeros(len(people), dtype=bool)
    for column in columns:
        missing |= column.missing
    return total, _Numbers(np.stack([column.numbers for column in columns], axis=1), missing)


class _Numbers:
    """The terms of a sum, one row per person."""

    def __init__(self, rows: Matrix, missing: Flags) -> None:
        self.rows, self.missing = rows, missing


def _groups(columns: list[Cells], present: Flags) -> Iterator[tuple[tuple[Value, ...], Flags]]:
    """Yield the combinations of categories that occur, in the order of their values."""
    if not columns:
        yield (), present
        return
    indices = np.stack([column.numbers for column in columns], axis=1)[present]
    for row in np.unique(indices, axis=0):
        values = tuple(c.values[int(k)] for c, k in zip(columns, row, strict=True))
        group = present.copy()
        group[present] = (indices == row).all(axis=1)
        yield values, group


def _band(total: Linear, numbers: _Numbers, group: Flags) -> list[float | int]:
    """Return the lowest and the highest sum of a group, rounded outward."""
    rows = np.unique(numbers.rows[group], axis=0).tolist()
    sums = [
        sum((k * Fraction(x) for (_, k), x in zip(total.terms, row, strict=True)), total.constant)
        for row in rows
    ]
    return [_rounded(min(sums), -math.inf), _rounded(max(sums), math.inf)]


def _rounded(number: Fraction, toward: float) -> float | int:
    """Round a number outward to float64; integers are written without a fraction."""
    nearest = float(number)
    if (Fraction(nearest) > number) == (toward < 0) and Fraction(nearest) != number:
        nearest = float(np.nextafter(nearest, toward))
    return int(nearest) if nearest.is_integer() and abs(nearest) < 2**53 else nearest


def suggestions(space: FeatureSpace, people: Matrix) -> list[dict[str, Any]]:
    """Return entries that nobody in the table violates, although many could.

    Combinations of a sensitive category and another one that never occur, and sensitive numbers
    that are never below another number.
    """
    cells = cells_of(space, people)
    found = [*_never_together(space, cells), *_never_below(space, cells)]
    found.sort(key=lambda one: -one[0])
    return [entry for _, entry in found[:MAX_SUGGESTIONS]]


def _never_together(
    space: FeatureSpace, cells: dict[str, Cells]
) -> Iterator[tuple[float, dict[str, Any]]]:
    categories = [a for a in space.attributes if isinstance(a, Categorical)]
    pairs = [
        (one, two)
        for one, two in product(categories, repeat=2)
        if one.sensitive and one is not two and (not two.sensitive or one.name < two.name)
    ]
    for one, two in pairs:
        first, second = cells[one.name], cells[two.name]
        table = np.zeros((one.n_values, two.n_values))
        np.add.at(table, (first.numbers, second.numbers), 1)
        expected = table.sum(axis=1)[:, None] * table.sum(axis=0) / max(1, table.sum())
        for row, value in enumerate(one.values):
            never = [
                (float(expected[row, column]), other)
                for column, other in enumerate(two.values)
                if not table[row, column] and expected[row, column] >= LEAST_EXPECTED
            ]
            if never:
                values = [other for _, other in never]
                cell = values if len(values) > 1 else values[0]
                yield sum(n for n, _ in never), {"forbidden": {one.name: value, two.name: cell}}


def _never_below(
    space: FeatureSpace, cells: dict[str, Cells]
) -> Iterator[tuple[float, dict[str, Any]]]:
    numbers = [a for a in space.attributes if isinstance(a, Integer | Levels)]
    for one, two in product(numbers, repeat=2):
        if one is two or not one.sensitive:
            continue
        first, second = cells[one.name], cells[two.name]
        both = ~first.missing & ~second.missing
        if not both.any():
            continue
        left, right = first.numbers[both], second.numbers[both]
        expected = _pairs_below(left, right) / len(left)
        least = (left - right).min()
        if least >= 0 and expected >= LEAST_EXPECTED:
            names = [_quoted(one.name), _quoted(two.name)]
            yield expected, {"condition": f"{names[0]} - {names[1]} >= {int(least)}"}


def _pairs_below(left: Vector, right: Vector) -> float:
    """Count the pairs of people of whom the first has a lower number than the second."""
    positions: Counts = np.searchsorted(np.sort(left), right)
    return float(positions.sum())


def _quoted(name: str) -> str:
    return name if name.isidentifier() else f"`{name}`"
