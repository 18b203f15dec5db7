"""Tables of any size for campaigns: people drawn from the space of German credit, with a model."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from feta import datasets, save_model
from feta.arrays import Matrix
from feta.cli.demo import train_model
from feta.space.attribute import Categorical, Derived
from feta.space.feature_space import FeatureSpace
from feta.space.sampling import draw_people

FETA = [sys.executable, "-m", "feta"]

# Rows that are drawn at a time, so that memory does not grow with the table.
DRAWN = 100_000


def save_german_model(path: Path) -> FeatureSpace:
    """Train the demonstration's network on German credit, and store it."""
    dataset = datasets.load("german")
    rows = dataset.space.encode(dataset.frame)
    save_model(train_model(dataset, rows, np.arange(len(rows)) % 5 != 0, seed=0), path)
    return dataset.space


def batches(space: FeatureSpace, n_rows: int, seed: int, *, size: int = DRAWN) -> Iterator[Any]:
    """Yield Arrow tables of people, numbered in the column `id`."""
    for number, start in enumerate(range(0, n_rows, size)):
        rng = np.random.default_rng([seed, number])
        people = draw_people(space, rng, min(size, n_rows - start))
        ids = np.arange(start, start + len(people))
        yield pa.table({"id": ids} | _columns(space, people))


def write_parts(tables: Iterator[Any], folder: Path) -> Iterator[Any]:
    """Write each table to a file of its own; yield the tables."""
    folder.mkdir(parents=True)
    for number, table in enumerate(tables):
        pq.write_table(table, folder / f"part-{number:05d}.parquet")
        yield table


def write_table(tables: Iterator[Any], path: Path) -> None:
    """Write all tables to one file, with a row group for each."""
    writer = None
    for table in tables:
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()


def _columns(space: FeatureSpace, people: Matrix) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    for attribute in space.attributes:
        codes = people[:, space.columns_of(attribute)]
        if isinstance(attribute, Derived):
            continue
        if isinstance(attribute, Categorical):
            indices = pa.array(codes.argmax(axis=1).astype(np.int32))
            names = pa.array([str(name) for name in attribute.all_values])
            columns[attribute.name] = pa.DictionaryArray.from_arrays(indices, names)
        else:
            columns[attribute.name] = codes[:, 0]
    return columns
