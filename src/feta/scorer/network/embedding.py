"""Embedded categories: one input of a network for several one-hot columns of a space.

The input is the index of the category's value.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from feta.arrays import Matrix
from feta.scorer.network.layers import Columns, LookupTable, Measured
from feta.space.attribute import Categorical
from feta.space.feature_space import FeatureSpace

if TYPE_CHECKING:
    from feta.scorer.network.network import Network


def expanded(network: "Network", space: FeatureSpace) -> "Network":
    """Return a network that reads one-hot columns where it embeds the index of a category.

    The values of a category are in the order of their indices. Networks without embeddings, and
    networks that do not fit the space, are returned unchanged.
    """
    inputs = _list_inputs(network, space)
    if inputs is None:
        return network
    first = network.first
    by_column = {table.column: table for table in first.tables}
    slopes: list[Matrix] = []
    tables: list[LookupTable] = []
    width = 0
    for column, is_index in inputs:
        table = by_column.get(column)
        if is_index and table is not None:
            slopes.append(table.rows.T)
        else:
            slopes.append(first.slopes[:, [column]])
            tables += [replace(table, column=width)] if table is not None else []
        width += slopes[-1].shape[1]
    expanded_first = Columns(
        first.bias, np.hstack(slopes), tuple(tables), first.cancelled_magnitude
    )
    measured = None if network.measured is None else Measured()  # the columns have new indices
    return replace(network, first=expanded_first, measured=measured)


def embedded_inputs(network: "Network") -> str:
    """Describe the inputs that are indices of a category; empty if there are none."""
    tables = network.first.tables
    if not tables:
        return ""
    shown = ", ".join(f"{table.column} ({len(table.numbers)} values)" for table in tables)
    return (
        f"; inputs {shown}, counted from 0, are looked up in an embedding: put the categories "
        "there, their values in the order of their indices"
    )


def unexpanded(people: Matrix, network: "Network", space: FeatureSpace) -> Matrix:
    """Convert rows of a space to the inputs of the network before it was expanded."""
    if _list_inputs(network, space) is None:
        return people
    parts = []
    for attribute, is_index in zip(space.attributes, _are_indices(network, space), strict=True):
        codes = people[:, space.columns_of(attribute)]
        parts.append(np.argmax(codes, axis=1).astype(np.float64)[:, None] if is_index else codes)
    return np.hstack(parts)


def _list_inputs(network: "Network", space: FeatureSpace) -> list[tuple[int, bool]] | None:
    """Return each input and whether it is a category's index; None if they do not fit the space."""
    inputs: list[tuple[int, bool]] = []
    for attribute, is_index in zip(space.attributes, _are_indices(network, space), strict=True):
        width = 1 if is_index else attribute.width
        inputs += [(len(inputs) + step, is_index) for step in range(width)]
    return inputs if len(inputs) == network.width != space.width else None


def _are_indices(network: "Network", space: FeatureSpace) -> list[bool]:
    """Return for each attribute whether it is a category whose index is an input."""
    counts = {table.column: len(table.numbers) for table in network.first.tables}
    flags: list[bool] = []
    column = 0
    for attribute in space.attributes:
        flags.append(isinstance(attribute, Categorical) and counts.get(column) == attribute.width)
        column += 1 if flags[-1] else attribute.width
    return flags
