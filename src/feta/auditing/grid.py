"""The decisions over one person's sensitive lattice, for a picture."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from feta.arrays import Counts, Matrix, Vector
from feta.model import Model
from feta.space.attribute import Categorical, Derived
from feta.space.axis import Axis
from feta.verdict.counterexample import Counterexample
from feta.wider_limits import model_for

# The largest picture that is readable on a page.
MAX_COLUMNS = 120
MAX_ROWS = 24


@dataclass(frozen=True, slots=True)
class Grid:
    """Decisions of counterparts: one row per group, one column per value of the horizontal axis."""

    horizontal: str  # the attribute of the columns
    values: tuple[str, ...]  # of the columns
    vertical: tuple[str, ...]  # the attributes of the rows
    groups: tuple[str, ...]  # names of the rows
    cells: Counts  # (rows, columns): index of the decision
    names: tuple[str, ...]  # of the decisions
    marks: tuple[tuple[int, int], ...]  # (row, column) of the two people of the pair
    fixed: tuple[str, ...]  # attributes that keep the first person's values
    thinned: bool  # whether some values of the horizontal axis are left out
    mark_names: tuple[str, str]


def grid(model: Model, pair: Counterexample) -> Grid | None:
    """Decide a person's counterparts for a picture; None unless all of them exist."""
    space = model.space
    if not space.finite or not model.relation.complete:
        return None
    axes = space.lattice.axes
    numeric = [axis for axis in axes if not isinstance(axis.attribute, Categorical | Derived)]
    horizontal = max(numeric or list(axes), key=len)
    vertical = _vertical_axes([axis for axis in axes if axis is not horizontal], pair)
    columns = _column_indices(horizontal, pair)
    people, shape = _people(pair.person, horizontal, columns, vertical)
    codes = horizontal.codes(columns)
    return Grid(
        horizontal.attribute.name,
        tuple(_value_text(horizontal, code) for code in codes),
        tuple(axis.attribute.name for axis in vertical),
        tuple(_group_names(vertical)),
        _decisions(model, people, pair).reshape(shape),
        model.rule.side_names(model.outcomes),
        _marks(pair, horizontal, columns, vertical),
        tuple(
            axis.attribute.name for axis in axes if axis is not horizontal and axis not in vertical
        ),
        len(columns) < len(horizontal),
        model.rule.words(unit="", log_odds=False).pair_names,
    )


def _vertical_axes(axes: Sequence[Axis], pair: Counterexample) -> list[Axis]:
    """Choose the axes of the rows: first those in which the pair differs, as many as fit."""
    chosen: list[Axis] = []
    ends = np.stack([pair.person, pair.counterpart])
    for axis in sorted(axes, key=lambda axis: (np.ptp(axis.indices(ends)) == 0, len(axis))):
        if math.prod(len(other) for other in [*chosen, axis]) <= MAX_ROWS:
            chosen.append(axis)
    return [axis for axis in axes if axis in chosen]


def _column_indices(horizontal: Axis, pair: Counterexample) -> Counts:
    """Choose all values of the horizontal axis, or as many as fit, including the pair's."""
    if len(horizontal) <= MAX_COLUMNS:
        return np.arange(len(horizontal))
    even = np.linspace(0, len(horizontal) - 1, MAX_COLUMNS - 2).astype(np.int64)
    return np.unique(
        np.concatenate([even, horizontal.indices(np.stack([pair.person, pair.counterpart]))])
    )


def _people(
    person: Vector, horizontal: Axis, columns: Counts, vertical: Sequence[Axis]
) -> tuple[Matrix, tuple[int, int]]:
    """Return the counterparts in the picture, row by row, and its shape."""
    row_indices = [np.arange(len(axis)) for axis in vertical]
    combined = np.meshgrid(*row_indices, columns, indexing="ij")
    people = np.repeat(person[None, :], combined[0].size, axis=0)
    for axis, indices in zip([*vertical, horizontal], combined, strict=True):
        people[:, list(axis.columns)] = axis.codes(indices.ravel())
    return people, (combined[0].size // len(columns), len(columns))


def _decisions(model: Model, people: Matrix, pair: Counterexample) -> Counts:
    """Decide exactly.

    Regression: whether a score exceeds the pair's lower one by more than epsilon.
    """
    wider = model_for(model, pair.person)
    reference = wider.exact_scores(pair.person[None, :])
    return wider.rule.sides(wider.exact_scores(people), reference).astype(np.int64)


def _value_text(axis: Axis, code: Vector) -> str:
    value = axis.attribute.decode(code[: axis.attribute.width])
    return "missing" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _group_names(vertical: Sequence[Axis]) -> list[str]:
    names = [""]
    for axis in vertical:
        values = [_value_text(axis, code) for code in axis.codes(np.arange(len(axis)))]
        names = [f"{name}, {value}" if name else value for name in names for value in values]
    return names


def _marks(
    pair: Counterexample, horizontal: Axis, columns: Counts, vertical: Sequence[Axis]
) -> tuple[tuple[int, int], ...]:
    """Find row and column of the two people of a pair."""
    marks = []
    for person in (pair.person, pair.counterpart):
        row = 0
        for axis in vertical:
            row = row * len(axis) + int(axis.indices(person[None, :])[0])
        column = int(np.searchsorted(columns, horizontal.indices(person[None, :])[0]))
        marks.append((row, column))
    return tuple(marks)
