"""Labelled: people from a table with the answers they should have had."""

from pathlib import Path

import numpy as np

from feta.arrays import Matrix, Vector
from feta.audit.answer import read_label
from feta.cli.audit import note_ignored
from feta.errors import DomainError, SchemaError
from feta.model import Model
from feta.space.attribute import Derived
from feta.space.table_file import Chunk, TableFile
from feta.space.table_options import TableOptions


def read_labelled(
    model: Model, data: Path, schema: Path, label: str, options: TableOptions
) -> tuple[Matrix, Vector]:
    """Read everybody with their labels, called as the model calls its decisions."""
    space = model.space
    needed = [a.name for a in space.attributes if not isinstance(a, Derived)]
    if label in needed:
        message = f"{schema}: the label {label!r} must not be a column that the network reads; take it out"
        raise SchemaError(message)
    table = TableFile(data, options)
    table.require([*needed, label])
    known = {a.name for a in space.attributes}
    note_ignored([name for name in table.names if name not in known | {label}])
    people, labels = [], []
    for chunk in table.chunks({*needed, label}, typed=table.formats(needed)):
        people.append(chunk.encode(space))
        labels += [_label(model, label, chunk, place) for place in range(len(chunk))]
    return np.concatenate(people), np.array(labels)


def _label(model: Model, column: str, chunk: Chunk, place: int) -> float:
    try:
        return float(read_label(model, chunk.columns[column][place]))
    except DomainError as error:
        row = chunk.start + place
        message = f"{chunk.path}, row {row + 1}: the label {column!r} {error}"
        raise DomainError(message, column=column, row=row) from None
