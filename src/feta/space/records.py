"""Raw records of people as named columns: dicts, pandas frames, Arrow tables and batches."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from feta.errors import DomainError

if TYPE_CHECKING:
    import pandas as pd

Record = Mapping[str, object]


def named_columns(
    records: "pd.DataFrame | Record | Sequence[Record]",
) -> dict[str, Sequence[object]]:
    """Return the columns of a frame, of one record, or of a list of records."""
    if isinstance(records, Mapping):
        return {name: [value] for name, value in records.items()}
    if is_arrow(records):
        return _arrow_columns(records)
    if not isinstance(records, Sequence):
        return _frame_columns(records)
    for row, record in enumerate(records):
        if not isinstance(record, Mapping):
            raise _invalid_people(type(record).__name__, f" in row {row}")
    names = list(dict.fromkeys(name for record in records for name in record))
    return {name: [record.get(name) for record in records] for name in names}


@contextmanager
def located(records: object) -> Iterator[None]:
    """Omit the row in errors about one record, which has no row."""
    try:
        yield
    except DomainError as error:
        if error.row is None or not isinstance(records, Mapping):
            raise
        message = str(error).removesuffix(f" (row {error.row})")
        column, what = error.column, error.what
        raise type(error)(message, column=column, row=error.row, what=what) from None


def is_arrow(records: object) -> bool:
    """Return whether people are an Arrow table or batch; it needs no import of pyarrow."""
    return hasattr(records, "column_names") and hasattr(records, "to_pylist")


def _arrow_columns(batch: Any) -> dict[str, Sequence[object]]:  # noqa: ANN401 - pyarrow has no types
    names = list(batch.column_names)
    _check_different(names)
    return {name: batch.column(index).to_pylist() for index, name in enumerate(names)}


def _frame_columns(frame: "pd.DataFrame") -> dict[str, Sequence[object]]:
    if not hasattr(frame, "iloc"):
        raise _invalid_people(type(frame).__name__)
    names = [str(name) for name in frame.columns]
    _check_different(names)
    return {name: list(frame.iloc[:, index].to_numpy()) for index, name in enumerate(names)}


def _check_different(names: Sequence[str]) -> None:
    repeated = first_repeated(names)
    if repeated is not None:
        message = f"repeated column: got {repeated!r} twice; expected different names"
        raise DomainError(message, column=repeated)


def _invalid_people(kind: str, place: str = "") -> DomainError:
    expected = "a pandas frame, an Arrow table, a dict, or a list of dicts"
    return DomainError(f"invalid people: got {kind}{place}; expected {expected}")


def first_repeated(names: Sequence[str]) -> str | None:
    """Return the first name that occurs more than once, if any."""
    return next((name for name, count in Counter(names).items() if count > 1), None)
