"""Guess: an attribute from the values of a column, to be read by a person before it is trusted."""

from collections.abc import Sequence

import numpy as np

from feta.errors import DomainError
from feta.space.attribute import Attribute, Categorical, Integer, Levels, Real, is_missing

# More different texts than this are an id or free text, not a category.
MAX_VALUES = 1000

# What to do about a cell without a value, in Python; the command line knows another way.
FILL = "; fill the empty cells"
EMPTY_CELLS = (
    f"{FILL}, or let the column be missing, as FeatureSpace.from_frame(…, missing=True) does"
)

# A sensitive number that is not whole becomes the list of values seen, if there are few enough.
MAX_LEVELS = 4096


class ColumnSummary:
    """What has been seen of one column so far; columns larger than memory come in parts."""

    def __init__(self, name: str, *, missing: bool = False) -> None:
        self.name = name
        self.takes_missing = missing
        self.missing = False
        self.texts: set[str] = set()
        self.numbers: set[float] = set()  # at most MOST_LEVELS + 1 of them
        self.low, self.high = np.inf, -np.inf
        self.whole = True
        self.truths: set[bool] = set()
        self.rows = 0
        self.first_text: tuple[int, str] | None = None  # its row, counted from 0, and the text

    def add(self, values: Sequence[object]) -> None:
        """Look at some more rows."""
        for value in values:
            if is_missing(value):
                self._add_missing(value)
                continue
            match value:
                case bool() | np.bool_():
                    self.truths.add(bool(value))
                case str():
                    self._add_text(value)
                case int() | float() | np.integer() | np.floating():
                    self._add_number(float(value))
                case _:
                    what = f"must hold texts, numbers or booleans, got {value!r}"
                    raise DomainError.at(self.name, self.rows, what)
            self.rows += 1

    def _add_missing(self, value: object) -> None:
        if not self.takes_missing:
            shown = "None" if value is None else "nan"
            what = f"must hold values, got {shown}{EMPTY_CELLS}"
            raise DomainError.at(self.name, self.rows, what)
        self.missing = True
        self.rows += 1

    def values(self) -> list[object] | None:
        """List the values seen; None where there are too many numbers to keep."""
        if len(self.numbers) > MAX_LEVELS:
            return None
        return [*sorted(self.texts), *sorted(self.numbers), *sorted(self.truths)]

    def _add_text(self, value: str) -> None:
        if not self.texts:
            self.first_text = (self.rows, value)
        self.texts.add(value)
        if len(self.texts) > MAX_VALUES:
            message = f"{self.name!r} has more than {MAX_VALUES} different texts; is it an id, or free text? leave the column out"
            raise DomainError(message, column=self.name)

    def _add_number(self, number: float) -> None:
        if not np.isfinite(number):
            raise DomainError.at(
                self.name,
                self.rows,
                f"must hold finite numbers, got {number!r}",
            )
        self.low, self.high = min(self.low, number), max(self.high, number)
        self.whole &= number == np.floor(number)
        if len(self.numbers) <= MAX_LEVELS:
            self.numbers.add(number + 0.0)

    def attribute(self, *, sensitive: bool) -> Attribute:
        """Guess what kind of attribute this is."""
        kinds = (bool(self.texts), bool(self.numbers), bool(self.truths))
        if sum(kinds) > 1:
            row, text = self.first_text or (self.rows - 1, "true")
            what = f"must hold numbers or texts, not both; one of its texts is {text!r}"
            raise DomainError(f"{self.name!r} {what}", column=self.name, row=row, what=what)
        if self.texts:
            return Categorical(self.name, tuple(sorted(self.texts)), sensitive, self.missing)
        if self.truths:
            return Categorical(self.name, (False, True), sensitive, self.missing)
        if not self.numbers:
            raise DomainError(f"{self.name!r} must have at least one row", column=self.name)
        if self.whole:
            return Integer(self.name, int(self.low), int(self.high), sensitive, self.missing)
        if not sensitive:
            return Real(self.name, self.low, self.high, missing=self.missing)
        if len(self.numbers) > MAX_LEVELS:
            message = f"{self.name!r} is sensitive and has more than {MAX_LEVELS} different values; declare it with Levels.spaced and a step"
            raise DomainError(message, column=self.name)
        return Levels(self.name, tuple(sorted(self.numbers)), sensitive, self.missing)
