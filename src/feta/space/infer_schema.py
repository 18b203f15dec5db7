"""Attributes inferred from the values of table columns; a person must check the result."""

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from feta.errors import DomainError, unknown_choice
from feta.space.attribute import Attribute, Categorical, Integer, Levels, Real
from feta.space.cell_values import is_missing

# A column with more different texts contains ids or free text, not categories.
MAX_VALUES = 1000

# A sensitive number with fractions becomes the list of its values, if it has at most this many.
MAX_LEVELS = 4096

# Advice about missing cells. `feta init` replaces it, since a command has other options.
FILL = "; fill the empty cells"
EMPTY_CELLS = (
    f"{FILL}, or let the column be missing, as FeatureSpace.from_frame(…, missing=True) does"
)


def infer_attributes(
    columns: Mapping[str, Sequence[object]], *, sensitive: Collection[str], missing: bool
) -> tuple[Attribute, ...]:
    """Infer one attribute per column; with `missing`, columns may have empty cells."""
    if not columns:
        raise DomainError("empty table: got no rows; expected at least one row")
    for name in sensitive:
        if name not in columns:
            message = f"unknown sensitive column: {unknown_choice(name, columns)}"
            raise DomainError(message, column=name)
    attributes = []
    for name, values in columns.items():
        summary = ColumnSummary(name, missing=missing)
        summary.add(values)
        attributes.append(summary.attribute(sensitive=name in sensitive))
    return tuple(attributes)


class ColumnSummary:
    """The values of one column so far; a column larger than memory is added in parts."""

    def __init__(self, name: str, *, missing: bool = False) -> None:
        self.name = name
        self.accepts_missing = missing
        self.missing = False
        self.texts: set[str] = set()
        self.numbers: set[float] = set()  # at most MAX_LEVELS + 1 of them
        self.low, self.high = np.inf, -np.inf
        self.integral = True
        self.booleans: set[bool] = set()
        self.rows = 0
        self.first_text: tuple[int, str] | None = None  # its row, counted from 0, and the text

    def add(self, values: Sequence[object]) -> None:
        """Add the values of more rows."""
        for value in values:
            if is_missing(value):
                self._add_missing(value)
                continue
            match value:
                case bool() | np.bool_():
                    self.booleans.add(bool(value))
                case str():
                    self._add_text(value)
                case int() | float() | np.integer() | np.floating():
                    self._add_number(float(value))
                case _:
                    what = f"is invalid: got {value!r}; expected a text, a number or a boolean"
                    raise DomainError.at(self.name, self.rows, what)
            self.rows += 1

    def _add_missing(self, value: object) -> None:
        if not self.accepts_missing:
            shown = "None" if value is None else "nan"
            what = f"is missing: got {shown}; expected a value in every row{EMPTY_CELLS}"
            raise DomainError.at(self.name, self.rows, what)
        self.missing = True
        self.rows += 1

    def values(self) -> list[object] | None:
        """List the different values; None if there are too many numbers to store."""
        if len(self.numbers) > MAX_LEVELS:
            return None
        return [*sorted(self.texts), *sorted(self.numbers), *sorted(self.booleans)]

    def _add_text(self, value: str) -> None:
        if not self.texts:
            self.first_text = (self.rows, value)
        self.texts.add(value)
        if len(self.texts) > MAX_VALUES:
            message = (
                f"{self.name!r} is not a category: got more than {MAX_VALUES} different texts; "
                "expected fewer; if it is an id or free text, leave the column out"
            )
            raise DomainError(message, column=self.name)

    def _add_number(self, number: float) -> None:
        if not np.isfinite(number):
            what = f"is invalid: got {number!r}; expected a finite number"
            raise DomainError.at(self.name, self.rows, what)
        self.low, self.high = min(self.low, number), max(self.high, number)
        self.integral &= number == np.floor(number)
        if len(self.numbers) <= MAX_LEVELS:
            self.numbers.add(number + 0.0)

    def attribute(self, *, sensitive: bool) -> Attribute:
        """Return the attribute that fits the values."""
        if sum((bool(self.texts), bool(self.numbers), bool(self.booleans))) > 1:
            row, text = self.first_text or (self.rows - 1, "true")
            what = f"is mixed: got the text {text!r} among other values; expected only one type"
            raise DomainError(f"{self.name!r} {what}", column=self.name, row=row, what=what)
        if self.texts:
            return Categorical(self.name, tuple(sorted(self.texts)), sensitive, self.missing)
        if self.booleans:
            return Categorical(self.name, (False, True), sensitive, self.missing)
        if not self.numbers:
            message = f"{self.name!r} is empty: got no values; expected at least one"
            raise DomainError(message, column=self.name)
        if self.integral:
            return Integer(self.name, int(self.low), int(self.high), sensitive, self.missing)
        if not sensitive:
            return Real(self.name, self.low, self.high, missing=self.missing)
        if len(self.numbers) > MAX_LEVELS:
            message = (
                f"{self.name!r} is sensitive: got more than {MAX_LEVELS} different values; "
                "expected fewer; declare it with Levels.spaced and a step"
            )
            raise DomainError(message, column=self.name)
        return Levels(self.name, tuple(sorted(self.numbers)), sensitive, self.missing)
