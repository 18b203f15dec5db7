"""People and labels of a whole table, for training."""

from pathlib import Path

import numpy as np

from feta.arrays import Matrix, Vector
from feta.errors import DomainError, SchemaError
from feta.io.chunk import Chunk
from feta.io.table_file import TableFile
from feta.io.table_options import TableOptions
from feta.model import Model
from feta.rule import Outcome
from feta.space.attribute import Derived


def read_labels(
    model: Model, data: Path, schema: Path, label: str, options: TableOptions
) -> tuple[Matrix, Vector, list[str]]:
    """Read all people, their labels, and the names of the columns that are not used."""
    space = model.space
    needed = [a.name for a in space.attributes if not isinstance(a, Derived)]
    if label in needed:
        raise SchemaError(
            f"{schema}: invalid label: got {label!r}, a column that the network reads; expected "
            "another column; remove this one from the schema or name another label"
        )
    table = TableFile(data, options)
    table.require([*needed, label])
    people, labels = [], []
    for chunk in table.chunks({*needed, label}, typed=table.formats(needed)):
        people.append(chunk.encode(space))
        labels += [float(read_label_cell(model, chunk, label, i)) for i in range(len(chunk))]
    used = {a.name for a in space.attributes} | {label}
    ignored = [name for name in table.names if name not in used]
    return np.concatenate(people), np.array(labels), ignored


def read_label_cell(model: Model, chunk: Chunk, column: str, index: int) -> Outcome:
    """Parse the label of one row of a chunk; an error names file, row and column."""
    try:
        return model.rule.read_label(chunk.columns[column][index], model.outcomes)
    except DomainError as error:
        row = chunk.start + index
        message = f"{chunk.path}, row {row + 1}: invalid label {column!r}: {error}"
        raise DomainError(message, column=column, row=row) from None
