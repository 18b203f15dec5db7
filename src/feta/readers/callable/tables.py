"""Tables for the user's function: which columns it takes, and how they are built fast."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from feta.arrays import Counts, Matrix
from feta.errors import NetworkError, missing
from feta.io.raw_table import RawTable, TableMaker
from feta.readers.callable.native_categories import category_formats
from feta.readers.sklearn.pipeline import raw_table, split_pipeline
from feta.scorer.counted.evaluator import distinct_rows
from feta.space.feature_space import FeatureSpace

if TYPE_CHECKING:
    import pandas as pd

# Rows of a table that is built at once: a column of few rows costs as much as the table.
FEW_ROWS = 64

# A function that converts encoded people to the input of the user's function.
MakeTable = Callable[[Matrix], Any]


@dataclass(frozen=True, slots=True, eq=False)
class ModelTable:
    """The input of the user's function, and the encoded columns that reach it.

    `names` are its raw columns; None if it takes encoded rows.
    """

    make: MakeTable
    columns: Counts
    names: tuple[str, ...] | None = None
    as_frame: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class ColumnwiseTable:
    """The same tables as `RawTable`, faster: each different value of a column is converted once.

    The counterparts of one person have few different values per column.
    """

    table: RawTable

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the table's columns, in order."""
        return self.table.names

    def __call__(self, people: Matrix) -> Any:  # noqa: ANN401 - a frame or an array
        """Return the table of these people."""
        if len(people) <= FEW_ROWS:
            return self.table(people)
        import pandas as pd  # noqa: PLC0415 - import feta stays light

        columns = {name: self._column(name, people) for name in self.names}
        frame = pd.DataFrame(columns, index=range(len(people)))
        return frame if self.table.as_frame else frame.to_numpy()

    def _column(self, name: str, people: Matrix) -> "pd.Series[Any]":
        space = self.table.space
        known = {attribute.name for attribute in space.attributes}
        columns = space.columns_of(space.attribute(name)) if name in known else slice(0, 0)
        first, inverse = distinct_rows(people[:, columns])
        single = replace(self.table, names=(name,), as_frame=True)
        frame: Any = single(people[first])
        series: pd.Series[Any] = frame[name]
        return series.take(inverse).reset_index(drop=True)  # it keeps the type of the column


def model_table(
    source: Any,  # noqa: ANN401 - any object
    space: FeatureSpace,
    table: TableMaker | None,
) -> ModelTable:
    """Return the input that a function or an estimator takes.

    A pipeline takes the raw columns on which it was fitted. An estimator with the names of raw
    columns takes these. An estimator that was fitted on as many columns as the space has encoded
    ones takes encoded rows, and so does a network. Any other function takes a frame of all raw
    columns.
    """
    if getattr(source, "reads_encoded_rows", False):
        return ModelTable(_as_it_is, np.arange(space.width))
    if table is not None:
        return _of_table(table, space)
    if hasattr(source, "predict") and split_pipeline(source)[0] is not None:
        return _of_table(raw_table(source, space), space)
    names = _fitted_names(source)
    known = [attribute.name for attribute in space.attributes]
    if names is not None and set(names) <= set(known):
        formats = category_formats(source, space, names)
        return _of_table(RawTable(space, tuple(names), formats=formats), space)
    count = getattr(source, "n_features_in_", None)
    if isinstance(count, int | np.integer) and hasattr(source, "predict"):
        return _of_count(int(count), names, space)
    if names is not None:
        wrong = next(name for name in names if name not in known)
        raise NetworkError(f"the model reads {wrong!r}: {missing(wrong, known, owner='schema')}")
    return _of_table(RawTable(space, tuple(known)), space)


def _of_count(count: int, names: list[str] | None, space: FeatureSpace) -> ModelTable:
    """Return the input of a bare estimator that was fitted on this many columns."""
    known = tuple(attribute.name for attribute in space.attributes)
    if count == space.width:
        make: MakeTable = _as_it_is if names is None else _Named(tuple(names))
        return ModelTable(make, np.arange(space.width))
    if count == len(known) and names is None:
        return _of_table(RawTable(space, known, as_frame=False), space)
    raise NetworkError(
        f"the estimator was fitted on {count} columns: got {len(known)} in the schema, and "
        f"{space.width} encoded ones; expected one of these numbers; pass table=…, which converts "
        "encoded people to the estimator's input"
    )


@dataclass(frozen=True, slots=True)
class _Named:
    """Encoded rows as a frame with the names on which an estimator was fitted."""

    names: tuple[str, ...]

    def __call__(self, people: Matrix) -> Any:  # noqa: ANN401 - a frame
        import pandas as pd  # noqa: PLC0415 - import feta stays light

        return pd.DataFrame(people.copy(), columns=list(self.names))


def _as_it_is(people: Matrix) -> Matrix:
    return people.copy()  # the model may change its rows


def _of_table(table: TableMaker, space: FeatureSpace) -> ModelTable:
    names = set(table.names)
    received = [
        np.arange(columns.start, columns.stop)
        for attribute in space.attributes
        if attribute.name in names
        for columns in (space.columns_of(attribute),)
    ]
    fast: MakeTable = ColumnwiseTable(table) if type(table) is RawTable else table
    as_frame = bool(getattr(table, "as_frame", True))
    columns = np.concatenate([np.zeros(0, dtype=np.int64), *received])
    return ModelTable(fast, columns, tuple(table.names), as_frame)


def _fitted_names(source: Any) -> list[str] | None:  # noqa: ANN401 - any object
    """Return the names of the columns on which an estimator was fitted; None if it has none."""
    names = getattr(source, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]
