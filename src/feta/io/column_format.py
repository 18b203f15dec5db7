"""Column formats: the type of a column in the user's table, and its marker for missing cells.

An encoder fitted on booleans does not know the text "True", and one that knows None does not know
NaN. The values of counterparts must therefore have the format of the user's table.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from feta.errors import DomainError, SchemaError
from feta.io.toml_text import toml
from feta.space.attribute import Attribute, Categorical, Derived, Integer, Levels, Real

if TYPE_CHECKING:
    import pandas as pd

Kind = Literal["boolean", "integer", "number", "text", "mixed", "other", "empty"]
Marker = Literal["None", "NaN", "NA"]
Formats = Mapping[str, "ColumnFormat"]

PLURALS = {"boolean": "booleans", "integer": "integers", "number": "numbers", "text": "texts"}


@dataclass(frozen=True, slots=True)
class ColumnFormat:
    """A type of pandas, the kind of its values, and its missing marker (None: not seen)."""

    dtype: Any
    kind: Kind
    marker: Marker | None = None

    @classmethod
    def of(cls, column: "pd.Series[Any]") -> "ColumnFormat":
        """Return the format of a column."""
        summary = FormatSummary(str(column.name))
        summary.add(column)
        return summary.format()

    def series(self, attribute: Attribute, values: Sequence[object]) -> "pd.Series[Any]":
        """Return values of an attribute in this format; None is a missing value."""
        import pandas as pd  # noqa: PLC0415 - import feta stays light

        cells = [self._missing_cell() if value is None else value for value in values]
        any_missing = any(value is None for value in values)
        dtype = self._extended_dtype(attribute, cells, any_missing=any_missing)
        try:
            column = pd.Series(cells, dtype=dtype)
        except (OverflowError, TypeError, ValueError):
            column = None
        if column is None or _has_changed(column, cells):
            message = (
                f"the table's type for {attribute.name!r} cannot represent all values of the "
                f"schema: got {dtype}; expected a type for {attribute.domain()}; convert the "
                "column with astype"
            )
            raise DomainError(message, column=attribute.name)
        return column

    def _missing_cell(self) -> object:
        import pandas as pd  # noqa: PLC0415 - import feta stays light

        return {"None": None, "NaN": np.nan, "NA": pd.NA}[self.marker or "NaN"]

    def _extended_dtype(
        self, attribute: Attribute, cells: Sequence[object], *, any_missing: bool
    ) -> Any:  # noqa: ANN401 - a type of pandas or numpy
        """Return the table's type, extended if it cannot represent these cells."""
        import pandas as pd  # noqa: PLC0415 - import feta stays light

        dtype = self.dtype
        if isinstance(dtype, pd.CategoricalDtype):
            return _with_categories(dtype, attribute, cells)
        if not isinstance(dtype, np.dtype):
            return dtype
        if dtype.kind in "iu" and isinstance(attribute, Real | Levels):
            return np.dtype(np.float64)
        return dtype_with_missing(dtype) if any_missing else dtype

    def check(self, attribute: Attribute, *, encoded: Sequence[object] = ()) -> None:
        """Raise if the values of a category have other types in the schema than in the table.

        `encoded` are the values that the model's encoder knows; the message advises what fits them.
        """
        kind = _kind_of(attribute)
        if kind is None or self.kind in ("mixed", "other", "empty") or kind == self.kind:
            return
        if {kind, self.kind} <= {"integer", "number"}:
            return
        message = (
            f"column {attribute.name!r} has different types in schema and table: got "
            f"{PLURALS[kind]} in the schema; expected {PLURALS[self.kind]}, as in the table; "
            f"{_remedy(attribute, self.kind, encoded)}"
        )
        raise SchemaError(message)


def _has_changed(column: "pd.Series[Any]", cells: Sequence[object]) -> bool:
    """Return whether integers or booleans got other values."""
    if getattr(column.dtype, "kind", "O") not in "iub":
        return False
    present = ~column.isna().to_numpy()
    triples = zip(column, cells, present, strict=True)
    return any(value != cell for value, cell, is_present in triples if is_present)


def _kind_of(attribute: Attribute) -> Kind | None:
    """Return the kind of a category's values; None for numbers, which are converted."""
    if not isinstance(attribute, Categorical):
        return None
    kinds: set[Kind] = {_value_kind(value) for value in attribute.values}
    return kinds.pop() if len(kinds) == 1 else None


def _value_kind(value: object) -> Kind:
    if isinstance(value, bool | np.bool_):
        return "boolean"
    if isinstance(value, int | np.integer):
        return "integer"
    if isinstance(value, float | np.floating):
        return "number"
    return "text" if isinstance(value, str) else "other"


def _remedy(attribute: Attribute, kind: Kind, encoded: Sequence[object]) -> str:
    """Return advice that makes schema and table agree, as far as an encoder accepts it."""
    if kind == "text":
        return "write the values as texts, with quotes, as the table spells them"
    as_values = (
        "write values = [false, true]"
        if kind == "boolean"
        else "write the values as numbers, without quotes"
    )
    dtype = toml({attribute.name: "str"})
    as_text = f"read the column as text, [table] dtype = {dtype}"
    kinds = {_value_kind(value) for value in encoded}
    if not kinds:
        return f"{as_values}, or {as_text}"
    return as_text if kinds == {"text"} else as_values


def _with_categories(dtype: Any, attribute: Attribute, cells: Sequence[object]) -> Any:  # noqa: ANN401 - a type of pandas
    """Add the categories that the table lacks; pandas treats other values as missing."""
    import pandas as pd  # noqa: PLC0415 - import feta stays light

    match attribute:
        case Categorical():
            values: list[object] = list(attribute.all_values)
        case Derived():
            values = [label for label, _, _ in attribute.bands]
        case _:  # there may be too many numbers to list
            values = list(cells)
    categories = list(dtype.categories)
    known = set(categories)
    present = [value for value in dict.fromkeys(values) if value is not None and value == value]  # noqa: PLR0124 - NaN
    more = [value for value in present if value not in known]
    return pd.CategoricalDtype([*categories, *more], dtype.ordered)


class FormatSummary:
    """The types and missing markers of a column, collected from its parts."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.dtypes: dict[str, Any] = {}
        self.kinds: set[Kind] = set()
        self.markers: set[Marker] = set()
        self.categories: dict[object, None] = {}
        self.rows = 0

    def add(self, column: "pd.Series[Any]") -> None:
        """Add a part of the column."""
        import pandas as pd  # noqa: PLC0415 - import feta stays light

        self.rows += len(column)
        is_missing = column.isna()
        present = column[~is_missing]
        if is_missing.any():
            self._add_markers(column[is_missing])
        if isinstance(column.dtype, pd.CategoricalDtype):
            self.categories |= dict.fromkeys(column.cat.categories.tolist())
            self.kinds |= {_value_kind(value) for value in column.cat.categories}
        elif len(present):
            self.kinds |= _kinds(present)
        if len(present) or isinstance(column.dtype, pd.CategoricalDtype):
            self.dtypes[str(column.dtype)] = column.dtype

    def _add_markers(self, cells: "pd.Series[Any]") -> None:
        """Add the markers of missing cells; raise if there are two."""
        import pandas as pd  # noqa: PLC0415 - import feta stays light

        if cells.dtype != object:
            self.markers.add("NA" if cells.iloc[0] is pd.NA else "NaN")
            return
        for value in cells:
            self.markers.add("None" if value is None else "NA" if value is pd.NA else "NaN")
            self._check_markers()

    def _check_markers(self) -> None:
        """Raise if there are two kinds of missing values."""
        if len(self.markers) > 1:
            message = (
                f"column {self.name!r} has two kinds of missing values, which a model may "
                f"treat differently: got {' and '.join(sorted(self.markers))}; expected one "
                f"kind; replace one of them, for example frame[{self.name!r}] = "
                f"frame[{self.name!r}].fillna(value)"
            )
            raise DomainError(message, column=self.name)

    def merged(self, other: "FormatSummary") -> "FormatSummary":
        """Return the summary of both parts of a column."""
        both = FormatSummary(self.name)
        both.dtypes = self.dtypes | other.dtypes
        both.kinds = self.kinds | other.kinds
        both.markers = self.markers | other.markers
        both.categories = self.categories | other.categories
        both.rows = self.rows + other.rows
        both._check_markers()
        return both

    @property
    def kind(self) -> Kind:
        """The kind of all values."""
        if not self.kinds:
            return "empty"  # all cells are missing
        if len(self.kinds) == 1:
            return next(iter(self.kinds))
        return "number" if self.kinds <= {"integer", "number"} else "mixed"

    def format(self, *, of_text: bool = False) -> ColumnFormat:
        """Return the format of the whole column; a mixed column of a text file contains texts."""
        if of_text and self.kind in ("mixed", "text") and not self.categories:
            return ColumnFormat(self._text_type(), "text", next(iter(self.markers), None))
        dtype = self._dtype(of_text=of_text)
        return ColumnFormat(dtype, self.kind, next(iter(self.markers), None))

    def _text_type(self) -> Any:  # noqa: ANN401 - a type of pandas or numpy
        import pandas as pd  # noqa: PLC0415 - import feta stays light

        types = list(self.dtypes.values())
        is_pandas_type = len(types) == 1 and not isinstance(types[0], np.dtype)  # such as "string"
        return types[0] if is_pandas_type else pd.Series(["a"]).dtype

    def _dtype(self, *, of_text: bool) -> Any:  # noqa: ANN401 - a type of pandas or numpy
        import pandas as pd  # noqa: PLC0415 - import feta stays light

        types = list(self.dtypes.values())
        if any(isinstance(dtype, pd.CategoricalDtype) for dtype in types):
            # The order of categories is part of the type: their codes depend on it.
            categories = list(self.categories)
            categories = _sort_if_possible(categories) if of_text else categories
            return pd.CategoricalDtype(categories, types[0].ordered)
        if not types:
            return np.dtype(np.float64)
        if len(types) == 1:
            extend = isinstance(types[0], np.dtype) and bool(self.markers)
            return dtype_with_missing(types[0]) if extend else types[0]
        return np.dtype(np.float64 if self.kind in ("integer", "number") else object)


def dtype_with_missing(dtype: "np.dtype[Any]") -> "np.dtype[Any]":
    """Return the type that pandas uses if some cells are missing."""
    if dtype.kind in "iu":
        return np.dtype(np.float64)
    return np.dtype(object) if dtype.kind == "b" else dtype


def _kinds(present: "pd.Series[Any]") -> set[Kind]:
    import pandas as pd  # noqa: PLC0415 - import feta stays light

    inferred: dict[str, set[Kind]] = {
        "string": {"text"},
        "boolean": {"boolean"},
        "integer": {"integer"},
        "floating": {"number"},
    }
    kinds = inferred.get(pd.api.types.infer_dtype(present, skipna=False))
    return kinds or {_value_kind(value) for value in present}


def _sort_if_possible(values: list[object]) -> list[object]:
    try:
        return sorted(values)  # type: ignore[type-var]  # other types raise
    except TypeError:
        return values


def formats_of(columns: Iterable["pd.Series[Any]"]) -> dict[str, ColumnFormat]:
    """Return the formats of columns."""
    return {str(column.name): ColumnFormat.of(column) for column in columns}


def plain_values(attribute: Attribute, codes: Any) -> list[object]:  # noqa: ANN401 - a matrix
    """Convert encoded columns of an attribute to Python values; None is a missing value."""
    numbers = np.asarray(codes)
    if isinstance(attribute, Categorical):
        categories = np.empty(attribute.n_values, dtype=object)
        categories[:] = attribute.all_values
        return list(categories[np.argmax(numbers, axis=1)])
    if isinstance(attribute, Derived):
        labels = [label for label, _, _ in attribute.bands]
        return [labels[index] for index in np.argmax(numbers, axis=1)]
    values = numbers[:, 0].astype(np.int64 if isinstance(attribute, Integer) else np.float64)
    cells: list[object] = values.tolist()
    if not attribute.missing:
        return cells
    flags = numbers[:, 1] == 1
    return [None if flag else cell for cell, flag in zip(cells, flags, strict=True)]


def summarize_columns(frames: "Iterable[pd.DataFrame]") -> dict[str, FormatSummary]:
    """Return the summaries of the columns of a table that is read in parts."""
    summaries: dict[str, FormatSummary] = {}
    for frame in frames:
        for name in frame.columns:
            summaries.setdefault(name, FormatSummary(name)).add(frame[name])
    return summaries


def dtypes_of(formats: Formats) -> dict[str, object]:
    """Return the types to pass to pandas; it infers booleans and categories itself."""
    return {
        name: column.dtype
        for name, column in formats.items()
        if column.kind != "boolean" and not hasattr(column.dtype, "categories")
    }
