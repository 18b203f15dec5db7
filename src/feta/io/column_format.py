"""Column formats: the type of a column in the user's table, and its marker for missing cells.

An encoder fitted on booleans does not know the text "True", and one that knows None does not know
NaN. Other values of a column must therefore be written as the table writes them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from feta.errors import DomainError, SchemaError
from feta.space.attribute import Attribute, Categorical, Derived, Integer, Levels, Real

if TYPE_CHECKING:
    import pandas as pd

Kind = Literal["boolean", "integer", "number", "text", "mixed", "other", "empty"]
Marker = Literal["None", "NaN", "NA"]
Formats = Mapping[str, "ColumnFormat"]

WORDS = {"boolean": "booleans", "integer": "integers", "number": "numbers", "text": "texts"}


@dataclass(frozen=True, slots=True)
class ColumnFormat:
    """A type of pandas, the kind of its values, and what a missing cell holds (None: not seen)."""

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
        """Write an attribute's values as the table does; None is a missing one."""
        import pandas as pd  # noqa: PLC0415 - import feta stays light

        missing = [value is None for value in values]
        cells = [
            self._missing() if gone else one for one, gone in zip(values, missing, strict=True)
        ]
        dtype = self._wide_enough(attribute, cells, any_missing=any(missing))
        try:
            column = pd.Series(cells, dtype=dtype)
        except (OverflowError, TypeError, ValueError):
            column = None
        if column is None or _lost(column, cells):
            message = (
                f"the table's type for {attribute.name!r} cannot hold all values of the schema: "
                f"got {dtype}; expected a type for {attribute.domain()}; convert the column with "
                "astype"
            )
            raise DomainError(message, column=attribute.name)
        return column

    def _missing(self) -> object:
        import pandas as pd  # noqa: PLC0415 - import feta stays light

        return {"None": None, "NaN": np.nan, "NA": pd.NA}[self.marker or "NaN"]

    def _wide_enough(
        self, attribute: Attribute, cells: Sequence[object], *, any_missing: bool
    ) -> Any:  # noqa: ANN401 - a type of pandas or numpy
        """Return a type like the table's that holds these values too."""
        import pandas as pd  # noqa: PLC0415 - import feta stays light

        dtype = self.dtype
        if isinstance(dtype, pd.CategoricalDtype):
            return _with_categories(dtype, attribute, cells)
        if not isinstance(dtype, np.dtype):
            return dtype
        fractions = isinstance(attribute, Real | Levels)
        if dtype.kind in "iu" and (any_missing or fractions):
            return np.dtype(np.float64)
        if dtype.kind == "b" and any_missing:
            return np.dtype(object)
        return dtype

    def check(self, attribute: Attribute) -> None:
        """Raise where the schema's values are of another type than the table's."""
        listed = _kind_of(attribute)
        if listed is None or self.kind in ("mixed", "other", "empty") or listed == self.kind:
            return
        if {listed, self.kind} <= {"integer", "number"}:
            return
        message = (
            f"the values of column {attribute.name!r} are {WORDS[listed]} in the schema, but "
            f"{WORDS[self.kind]} in the table; {_remedy(attribute, self.kind)}"
        )
        raise SchemaError(message)


def _lost(column: "pd.Series[Any]", cells: Sequence[object]) -> bool:
    """Return whether integers or booleans became other ones."""
    if getattr(column.dtype, "kind", "O") not in "iub":
        return False
    present = ~column.isna().to_numpy()
    return any(
        one != other for one, other, here in zip(column, cells, present, strict=True) if here
    )


def _kind_of(attribute: Attribute) -> Kind | None:
    """Return the kind of a category's values; numbers are converted, so they always fit."""
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


def _remedy(attribute: Attribute, kind: Kind) -> str:
    """Return what to write so that schema and table agree."""
    assert isinstance(attribute, Categorical)
    as_text = f'read the column as text, [table] dtype = {{ {attribute.name} = "str" }}'
    if kind == "boolean":
        return f"write values = [false, true], or {as_text}"
    if kind in ("integer", "number"):
        return f"write the values as numbers, without quotes, or {as_text}"
    return "write the values as texts, with quotes, as the table spells them"


def _with_categories(dtype: Any, attribute: Attribute, cells: Sequence[object]) -> Any:  # noqa: ANN401 - a type of pandas
    """Add the categories that the table lacks: pandas would take their values for missing."""
    import pandas as pd  # noqa: PLC0415 - import feta stays light

    match attribute:
        case Categorical():
            values: list[object] = list(attribute.all_values)
        case Derived():
            values = [label for label, _, _ in attribute.bands]
        case _:  # numbers, of which there may be too many to list
            values = list(cells)
    seen = list(dtype.categories)
    known = set(seen)
    unseen = [one for one in dict.fromkeys(values) if one is not None and one == one]  # noqa: PLR0124 - NaN
    return pd.CategoricalDtype([*seen, *(one for one in unseen if one not in known)], dtype.ordered)


class FormatSummary:
    """The types and markers in the parts of a column so far; the format follows from all parts."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.dtypes: dict[str, Any] = {}
        self.kinds: set[Kind] = set()
        self.markers: set[Marker] = set()
        self.categories: dict[object, None] = {}
        self.rows = 0

    def add(self, column: "pd.Series[Any]") -> None:
        """Add more rows."""
        import pandas as pd  # noqa: PLC0415 - import feta stays light

        self.rows += len(column)
        gone = column.isna()
        present = column[~gone]
        if gone.any():
            self._add_markers(column, gone)
        if isinstance(column.dtype, pd.CategoricalDtype):
            self.categories |= dict.fromkeys(column.cat.categories.tolist())
            self.kinds |= {_value_kind(one) for one in column.cat.categories}
        elif len(present):
            self.kinds |= _kinds(present)
        if len(present) or isinstance(column.dtype, pd.CategoricalDtype):
            self.dtypes[str(column.dtype)] = column.dtype

    def _add_markers(self, column: "pd.Series[Any]", gone: "pd.Series[bool]") -> None:
        import pandas as pd  # noqa: PLC0415 - import feta stays light

        if column.dtype != object:
            value = column[gone].iloc[0]
            self.markers.add("NA" if value is pd.NA else "NaN")
            return
        for value in column[gone]:
            self.markers.add("None" if value is None else "NA" if value is pd.NA else "NaN")
            if len(self.markers) > 1:
                message = (
                    f"column {self.name!r} holds two kinds of missing values "
                    f"({' and '.join(sorted(self.markers))}), which a model may treat "
                    f"differently; replace one of them, for example frame[{self.name!r}] = "
                    f"frame[{self.name!r}].fillna(value)"
                )
                raise DomainError(message, column=self.name)

    @property
    def kind(self) -> Kind:
        """The kind of all values together."""
        if not self.kinds:
            return "empty"  # nothing but missing cells
        if len(self.kinds) == 1:
            return next(iter(self.kinds))
        return "number" if self.kinds <= {"integer", "number"} else "mixed"

    def format(self, *, of_text: bool = False) -> ColumnFormat:
        """Return the whole column's format; a mixed column of a text file holds texts."""
        if of_text and self.kind in ("mixed", "text") and not self.categories:
            return ColumnFormat(self._text_type(), "text", next(iter(self.markers), None))
        dtype = self._dtype(of_text=of_text)
        return ColumnFormat(dtype, self.kind, next(iter(self.markers), None))

    def _text_type(self) -> Any:  # noqa: ANN401 - a type of pandas or numpy
        import pandas as pd  # noqa: PLC0415 - import feta stays light

        types = list(self.dtypes.values())
        chosen = len(types) == 1 and not isinstance(types[0], np.dtype)  # such as "string"
        return types[0] if chosen else pd.Series(["a"]).dtype

    def _dtype(self, *, of_text: bool) -> Any:  # noqa: ANN401 - a type of pandas or numpy
        import pandas as pd  # noqa: PLC0415 - import feta stays light

        types = list(self.dtypes.values())
        if any(isinstance(one, pd.CategoricalDtype) for one in types):
            # The order of categories is part of a type: what reads their codes depends on it.
            listed = list(self.categories)
            return pd.CategoricalDtype(_sorted(listed) if of_text else listed, types[0].ordered)
        if not types:
            return np.dtype(np.float64)
        if len(types) == 1:
            plain = isinstance(types[0], np.dtype) and bool(self.markers)
            return _with_missing(types[0]) if plain else types[0]
        return np.dtype(np.float64 if self.kind in ("integer", "number") else object)


def _with_missing(dtype: "np.dtype[Any]") -> "np.dtype[Any]":
    """Return the type that pandas takes where some cells are missing."""
    if dtype.kind in "iu":
        return np.dtype(np.float64)
    return np.dtype(object) if dtype.kind == "b" else dtype


def _kinds(present: "pd.Series[Any]") -> set[Kind]:
    import pandas as pd  # noqa: PLC0415 - import feta stays light

    known: dict[str, set[Kind]] = {
        "string": {"text"},
        "boolean": {"boolean"},
        "integer": {"integer"},
        "floating": {"number"},
    }
    found = known.get(pd.api.types.infer_dtype(present, skipna=False))
    return found or {_value_kind(one) for one in present}


def _sorted(values: list[object]) -> list[object]:
    try:
        return sorted(values)  # type: ignore[type-var]  # of one type, or refused
    except TypeError:
        return values


def formats_of(columns: Iterable["pd.Series[Any]"]) -> dict[str, ColumnFormat]:
    """Return the formats of columns."""
    return {str(one.name): ColumnFormat.of(one) for one in columns}


def plain_values(attribute: Attribute, codes: Any) -> list[object]:  # noqa: ANN401 - a matrix
    """Turn an attribute's columns back into Python values; None is a missing one."""
    numbers = np.asarray(codes)
    if isinstance(attribute, Categorical):
        every = np.empty(attribute.n_values, dtype=object)
        every[:] = attribute.all_values
        return list(every[np.argmax(numbers, axis=1)])
    if isinstance(attribute, Derived):
        labels = [label for label, _, _ in attribute.bands]
        return [labels[index] for index in np.argmax(numbers, axis=1)]
    values = numbers[:, 0].astype(np.int64 if isinstance(attribute, Integer) else np.float64)
    cells: list[object] = values.tolist()
    if not attribute.missing:
        return cells
    return [None if gone else one for one, gone in zip(cells, numbers[:, 1] == 1, strict=True)]


def summarize_formats(
    frames: "Iterable[pd.DataFrame]", *, of_text: bool
) -> dict[str, ColumnFormat]:
    """Return the formats of the columns of a table that comes in parts."""
    summaries: dict[str, FormatSummary] = {}
    for frame in frames:
        for name in frame.columns:
            summaries.setdefault(name, FormatSummary(name)).add(frame[name])
    return {name: summary.format(of_text=of_text) for name, summary in summaries.items()}


def dtypes_of(formats: Formats) -> dict[str, object]:
    """Return the types to pass to pandas; it infers booleans and categories itself."""
    return {
        name: column.dtype
        for name, column in formats.items()
        if column.kind != "boolean" and not hasattr(column.dtype, "categories")
    }
