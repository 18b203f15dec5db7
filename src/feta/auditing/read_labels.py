"""Labelled: people from a table with the answers they should have had."""

from pathlib import Path

import numpy as np

from feta.arrays import Matrix, Vector
from feta.auditing.labels import read_label
from feta.errors import DomainError, SchemaError
from feta.io.chunk import Chunk
from feta.io.table_file import TableFile
from feta.io.table_options import TableOptions
from feta.model import Model
from feta.space.attribute import Derived


def read_labels(
    model: Model, data: Path, schema: Path, label: str, options: TableOptions
) -> tuple[Matrix, Vector, list[str]]:
    """Read everybody with their labels, and which columns of the table are not used."""
    space = model.space
    needed = [a.name for a in space.attributes if not isinstance(a, Derived)]
    if label in needed:
        message = f"{schema}: the label {label!r} must not be a column that the network reads; take it out"
        raise SchemaError(message)
    table = TableFile(data, options)
    table.require([*needed, label])
    people, labels = [], []
    for chunk in table.chunks({*needed, label}, typed=table.formats(needed)):
        people.append(chunk.encode(space))
        labels += [_label(model, label, chunk, index) for index in range(len(chunk))]
    used = {a.name for a in space.attributes} | {label}
    ignored = [name for name in table.names if name not in used]
    return np.concatenate(people), np.array(labels), ignored


def _label(model: Model, column: str, chunk: Chunk, index: int) -> float:
    try:
        return float(read_label(model, chunk.columns[column][index]))
    except DomainError as error:
        row = chunk.start + index
        message = f"{chunk.path}, row {row + 1}: the label {column!r} {error}"
        raise DomainError(message, column=column, row=row) from None
