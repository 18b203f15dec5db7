"""Embedding: one input that numbers the values of a category, beside one column a value in the space."""

from dataclasses import replace

import numpy as np

from feta.arrays import Matrix
from feta.scorer.network.network import Columns, LookupTable, Measured, Network
from feta.space.attribute import Categorical
from feta.space.feature_space import FeatureSpace


def expanded(network: Network, space: FeatureSpace) -> Network:
    """Let a network read one column a value where it embeds a category's number.

    The category's values stand in the order of their numbers, 0, 1, … Networks without embeddings,
    and those that do not fit the space, are given back as they are.
    """
    indices = _embedded(network, space)
    if indices is None:
        return network
    first = network.first
    by_column = {table.column: table for table in first.tables}
    slopes: list[Matrix] = []
    tables: list[LookupTable] = []
    width = 0
    for column, wide in indices:
        table = by_column.get(column)
        if wide and table is not None:
            slopes.append(table.rows.T)
        else:
            slopes.append(first.slopes[:, [column]])
            tables += [replace(table, column=width)] if table is not None else []
        width += slopes[-1].shape[1]
    new = Columns(first.bias, np.hstack(slopes), tuple(tables), first.cancelled_magnitude)
    measured = None if network.measured is None else Measured()  # its columns have moved
    return replace(network, first=new, measured=measured)


def embedded_inputs(network: Network) -> str:
    """Say which inputs number the values of a category; nothing where there are none."""
    tables = network.first.tables
    if not tables:
        return ""
    shown = ", ".join(f"{table.column} ({len(table.numbers)} values)" for table in tables)
    return f"; inputs {shown}, counted from 0, are looked up in an embedding: put the categories there, their values in the order of their numbers"


def unexpanded(people: Matrix, network: Network, space: FeatureSpace) -> Matrix:
    """Turn a space's rows back into the inputs of the network as it was read."""
    indices = _embedded(network, space)
    if indices is None:
        return people
    parts = []
    for attribute, whole in zip(space.attributes, _whole(network, space), strict=True):
        codes = people[:, space.columns_of(attribute)]
        parts.append(np.argmax(codes, axis=1).astype(np.float64)[:, None] if whole else codes)
    return np.hstack(parts)


def _embedded(network: Network, space: FeatureSpace) -> list[tuple[int, bool]] | None:
    """List the network's inputs, and which of them embed a category; None where they do not fit."""
    indices: list[tuple[int, bool]] = []
    for attribute, whole in zip(space.attributes, _whole(network, space), strict=True):
        indices += [(len(indices) + step, whole) for step in range(1 if whole else attribute.width)]
    return indices if len(indices) == network.width != space.width else None


def _whole(network: Network, space: FeatureSpace) -> list[bool]:
    """Tell of each attribute whether it is a category that one input of the network numbers."""
    counts = {table.column: len(table.numbers) for table in network.first.tables}
    flags: list[bool] = []
    column = 0
    for attribute in space.attributes:
        flags.append(isinstance(attribute, Categorical) and counts.get(column) == attribute.width)
        column += 1 if flags[-1] else attribute.width
    return flags
