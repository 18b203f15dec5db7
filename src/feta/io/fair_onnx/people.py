"""Which rows of a graph are people of the space: all others are not `sure`.

A float32 graph takes numbers that are rounded to float32. Limits and bands are compared with the
rounded number itself, in float64, so that a number that rounding moved across one is not sure.
Listed numbers are compared with what each of them is rounded to: 0.1 is a level, and so is its
float32.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np

from feta.arrays import Counts, Flags, Matrix, Vector
from feta.errors import NetworkError, SchemaError
from feta.io.fair_onnx.graph import Graph
from feta.space.attribute import Attribute, Categorical, Derived, Integer, Levels
from feta.space.feature_space import FeatureSpace
from feta.space.limits import limits_of

# A row is compared with each of them.
MAX_LEVELS = 10_000


@dataclass(frozen=True, slots=True, eq=False)
class SharedColumns:
    """The columns that counterparts share, in order, and their attributes."""

    names: tuple[str, ...]
    columns: Counts  # of the space
    attributes: tuple[Attribute, ...]

    @classmethod
    def of(cls, space: FeatureSpace) -> Self:
        """Return the shared columns of a space; raise if there are none."""
        attributes = tuple(a for a in space.attributes if not space.is_sensitive(a))
        if not attributes:
            raise SchemaError(
                "no graph for a space without shared columns: got sensitive attributes only; "
                "expected one that is not; everybody gets the same decision"
            )
        names = [name for a in attributes for name in _column_names(a.name, a.width)]
        return cls(tuple(names), np.flatnonzero(~space.sensitive_columns), attributes)

    @property
    def starts(self) -> dict[str, int]:
        """The first column of each attribute, among the shared ones."""
        ends = np.cumsum([attribute.width for attribute in self.attributes])
        return {a.name: int(end) - a.width for a, end in zip(self.attributes, ends, strict=True)}


def _column_names(name: str, width: int) -> list[str]:
    return [name] if width == 1 else [f"{name}[{index}]" for index in range(width)]


def valid_rows(graph: Graph, columns: SharedColumns) -> str:
    """Return whether each row is a person of the space, (rows,).

    NaN is in no domain: every comparison with it is false.
    """
    valid = ""
    for check in _checks(graph, columns, graph.exact("people")):
        flag = graph.every(check)
        valid = graph.apply("And", valid, flag) if valid else flag
    return valid


def _checks(graph: Graph, columns: SharedColumns, people: str) -> Iterator[str]:
    """Yield flags (rows, …), which are all set for a person; `people` are float64."""
    lows, highs = _limits(graph, columns.attributes)
    yield graph.apply("GreaterOrEqual", people, graph.store(lows))
    yield graph.apply("LessOrEqual", people, graph.store(highs))
    real = ~_integers(columns.attributes)
    same = graph.apply("Equal", graph.apply("Floor", people), people)
    yield graph.apply("Or", same, graph.store(real))
    blocks = _blocks(columns)
    if blocks.shape[1]:
        sums = graph.apply("MatMul", people, graph.store(blocks))
        yield graph.apply("Equal", sums, graph.store(np.array(1.0)))
    yield from _gaps(graph, columns, people)
    for attribute in columns.attributes:
        if isinstance(attribute, Levels):
            yield _listed(graph, columns, people, attribute)
        if isinstance(attribute, Derived):
            yield _derived(graph, columns, people, attribute)


def _limits(graph: Graph, attributes: tuple[Attribute, ...]) -> tuple[Vector, Vector]:
    """Return the lowest and the highest number of each column."""
    limits: list[tuple[float, float]] = []
    for attribute in attributes:
        if isinstance(attribute, Categorical | Derived):
            limits += [(0.0, 1.0)] * attribute.width
            continue
        low, high = limits_of(attribute)
        if isinstance(attribute, Levels):
            low, high = _rounded(graph, low), _rounded(graph, high)
        # A missing number is encoded as the lowest one, rounded; `_gaps` checks which it is.
        lowest = min(low, _rounded(graph, low)) if attribute.missing else low
        highest = max(high, _rounded(graph, low)) if attribute.missing else high
        limits += [(lowest, highest), *[(0.0, 1.0)] * attribute.missing]
    lows, highs = np.array(limits).T
    return lows, highs


def _rounded(graph: Graph, number: float) -> float:
    return float(graph.rounded(number))


def _integers(attributes: tuple[Attribute, ...]) -> Flags:
    """Flag the columns of integers, one-hot columns and flags included."""
    flags: list[bool] = []
    for attribute in attributes:
        integral = isinstance(attribute, Categorical | Derived | Integer)
        flags += [integral, *[True] * (attribute.width - 1)]
    return np.array(flags, dtype=bool)


def _blocks(columns: SharedColumns) -> Matrix:
    """Return which columns belong to each one-hot attribute, (columns, attributes)."""
    blocks = [a for a in columns.attributes if isinstance(a, Categorical | Derived)]
    members = np.zeros((len(columns.names), len(blocks)))
    for index, attribute in enumerate(blocks):
        start = columns.starts[attribute.name]
        members[start : start + attribute.width, index] = 1.0
    return members


def _gaps(graph: Graph, columns: SharedColumns, people: str) -> Iterator[str]:
    """Yield flags of numbers that are inside their limits, or missing and the lowest one."""
    attributes = [
        a for a in columns.attributes if not isinstance(a, Categorical | Derived) and a.missing
    ]
    if not attributes:
        return
    starts = np.array([columns.starts[a.name] for a in attributes])
    limits = np.array([limits_of(a) for a in attributes])
    lowest = graph.rounded(limits[:, 0]).astype(np.float64)
    for row, attribute in enumerate(attributes):
        if isinstance(attribute, Levels):
            limits[row] = graph.rounded(limits[row])
    numbers = graph.apply("Gather", people, graph.store(starts), axis=1)
    flags = graph.apply("Gather", people, graph.store(starts + 1), axis=1)
    absent = graph.apply("Equal", flags, graph.store(np.array(1.0)))
    filled = graph.apply("Equal", numbers, graph.store(lowest))
    above = graph.apply("GreaterOrEqual", numbers, graph.store(limits[:, 0]))
    below = graph.apply("LessOrEqual", numbers, graph.store(limits[:, 1]))
    present = graph.apply("And", graph.apply("Not", absent), graph.apply("And", above, below))
    yield graph.apply("Or", graph.apply("And", absent, filled), present)


def _listed(graph: Graph, columns: SharedColumns, people: str, attribute: Levels) -> str:
    """Return flags of numbers that are levels, (rows, 1)."""
    if len(attribute.numbers) > MAX_LEVELS:
        raise SchemaError(
            f"too many levels of {attribute.name!r} for a graph: got {len(attribute.numbers):,}; "
            f"expected at most {MAX_LEVELS:,}; declare a number, or use feta serve"
        )
    numbers = graph.rounded(attribute.numbers).astype(np.float64)
    if (np.diff(numbers) <= 0).any():
        raise NetworkError(
            f"{graph.precision} does not distinguish the levels of {attribute.name!r}; "
            "write the graph in float64"
        )
    cell = _column(graph, columns, people, attribute)
    same = graph.numbers(graph.apply("Equal", cell, graph.store(numbers[None])))
    found = graph.apply("ReduceMax", same, axes=[1], keepdims=1)
    return graph.apply("Greater", found, graph.nearest(0.5))


def _derived(graph: Graph, columns: SharedColumns, people: str, attribute: Derived) -> str:
    """Return flags of bands that are set if and only if the number is in them, (rows, bands)."""
    source = next(a for a in columns.attributes if a.name == attribute.source)
    bands = [(low, high) for _, low, high in attribute.bands]
    if isinstance(source, Levels):
        numbers = np.array(source.numbers)
        members = [numbers[(numbers >= low) & (numbers <= high)] for low, high in bands]
        bands = [
            (_rounded(graph, part[0]), _rounded(graph, part[-1])) if part.size else (1.0, 0.0)
            for part in members
        ]
    lows, highs = np.array(bands).T
    start = columns.starts[attribute.name]
    chosen = graph.store(np.arange(start, start + attribute.width))
    codes = graph.apply("Gather", people, chosen, axis=1)
    number = _column(graph, columns, people, source)
    above = graph.apply("GreaterOrEqual", number, graph.store(lows[None]))
    below = graph.apply("LessOrEqual", number, graph.store(highs[None]))
    inside = graph.numbers(graph.apply("And", above, below), exact=True)
    return graph.apply("Equal", codes, inside)


def _column(graph: Graph, columns: SharedColumns, people: str, attribute: Attribute) -> str:
    """Return the numbers of an attribute, (rows, 1)."""
    position = graph.store(np.array([columns.starts[attribute.name]]))
    return graph.apply("Gather", people, position, axis=1)
