"""Columns of Arrow batches: those that are kept, and those that are added."""

from collections.abc import Sequence
from typing import Any

from feta.arrays import Answers
from feta.errors import DomainError, MissingExtra, missing
from feta.model import Model


def arrow() -> Any:  # noqa: ANN401 - pyarrow ships no types
    """Return pyarrow."""
    try:
        import pyarrow as pa  # noqa: PLC0415 - an extra
    except ImportError:
        raise MissingExtra("pyarrow", "parquet") from None
    return pa


def check_kept(kept: Sequence[str], added: Sequence[str]) -> tuple[str, ...]:
    """Return the names of columns to keep; raise for a text, and for names that are added."""
    if isinstance(kept, str):
        raise DomainError(f"invalid columns to keep: got the text {kept!r}; expected a list")
    for name in kept:
        if name in added:
            raise DomainError(
                f"invalid column to keep: got {name!r}, which is added; rename it", column=name
            )
    return tuple(kept)


def with_columns(batch: Any, kept: Sequence[str], added: dict[str, Any]) -> Any:  # noqa: ANN401
    """Return the kept columns and the added ones, as a batch or table like the given one."""
    names = list(batch.column_names)
    for name in kept:
        if name not in names:
            raise DomainError(missing(name, names), column=name)
    arrays = [batch.column(name) for name in kept] + list(added.values())
    return type(batch).from_arrays(arrays, names=[*kept, *added])


def outcome_array(model: Model, answers: Answers) -> Any:  # noqa: ANN401 - pyarrow ships no types
    """Return the names of decisions; regression: the scores."""
    pa = arrow()
    if model.rule.tolerance is not None:
        return pa.array(answers, type=pa.float64())
    return pa.array(list(model.outcomes), type=pa.string()).take(pa.array(answers.astype("int64")))
