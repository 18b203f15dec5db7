"""Which rows of a graph are people of the space: all others are not `sure`."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from feta.arrays import Counts, Flags, Matrix, Vector
from feta.io.fair_onnx.graph import Graph
from feta.space.attribute import Categorical, Derived, Integer
from feta.space.feature_space import FeatureSpace
from feta.space.limits import limits_of


@dataclass(frozen=True, slots=True, eq=False)
class SharedColumns:
    """The columns that counterparts share, in order, and what each may hold."""

    names: tuple[str, ...]
    columns: Counts  # of the space
    lows: Vector
    highs: Vector
    integers: Flags
    blocks: Matrix  # (columns, categories): 1 if the column belongs to the category

    @classmethod
    def of(cls, space: FeatureSpace) -> Self:
        """Return the shared columns of a space."""
        names: list[str] = []
        limits: list[tuple[float, float]] = []
        integers: list[bool] = []
        blocks: list[list[int]] = []
        for attribute in space.attributes:
            if space.is_sensitive(attribute):
                continue
            if isinstance(attribute, Categorical | Derived):
                blocks.append(list(range(len(names), len(names) + attribute.width)))
                limits += [(0.0, 1.0)] * attribute.width
                integers += [True] * attribute.width
            else:
                limits += [limits_of(attribute), *[(0.0, 1.0)] * attribute.missing]
                integers += [isinstance(attribute, Integer), *[True] * attribute.missing]
            names += _column_names(attribute.name, attribute.width)
        members = np.zeros((len(names), len(blocks)))
        for index, block in enumerate(blocks):
            members[block, index] = 1.0
        lows, highs = np.array(limits).reshape(-1, 2).T
        columns = np.flatnonzero(~space.sensitive_columns)
        return cls(tuple(names), columns, lows, highs, np.array(integers, dtype=bool), members)


def _column_names(name: str, width: int) -> list[str]:
    return [name] if width == 1 else [f"{name}[{index}]" for index in range(width)]


def valid_rows(graph: Graph, columns: SharedColumns) -> str:
    """Return whether each row is inside the limits for which the error bounds hold, (rows,).

    NaN is not: every comparison with it is false.
    """
    checks = [
        graph.apply("GreaterOrEqual", "people", graph.below(columns.lows)),
        graph.apply("LessOrEqual", "people", graph.above(columns.highs)),
    ]
    if columns.integers.any():
        same = graph.apply("Equal", graph.apply("Floor", "people"), "people")
        checks.append(graph.apply("Or", same, graph.store(~columns.integers)))
    if columns.blocks.shape[1]:
        sums = graph.apply("MatMul", "people", graph.nearest(columns.blocks))
        checks.append(graph.apply("Equal", sums, graph.nearest(np.array(1.0))))
    flags = [graph.every(check) for check in checks]
    valid = flags[0]
    for flag in flags[1:]:
        valid = graph.apply("And", valid, flag)
    return valid
