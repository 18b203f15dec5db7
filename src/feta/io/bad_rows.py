"""Bad rows: how many rows of a table cannot be read, by column and reason.

Reasons are short and stable, so that equal problems are counted together. The memory they take is
bounded: of a column with very many different problems, the later ones are counted as one.
"""

import math
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property

from feta.arrays import Matrix
from feta.errors import DomainError
from feta.io.cell_text import parse_number
from feta.io.chunk import Chunk
from feta.io.column_format import Formats
from feta.io.csv_table import WRONG_CELLS
from feta.io.table_file import TableFile
from feta.space.attribute import Attribute, Categorical, Derived, Integer, Levels, Real
from feta.space.feature_space import FeatureSpace

# Different reasons kept per column, and columns with reasons; what exceeds them is counted as one.
MAX_REASONS = 20
MAX_COLUMNS = 200

# Kinds of problems that are listed for a reader.
MAX_LISTED = 12

# Characters of a cell that a reason shows.
SHOWN_CHARACTERS = 40

# Raises for people outside the limits of shared columns who cannot be decided; see `Chunk.encode`.
Admit = Callable[[Matrix], None] | None

OTHER_REASONS = "other problems"
OTHER_COLUMNS = "other columns"
WHOLE_ROW = "the row"


@dataclass(frozen=True, slots=True)
class BadKind:
    """One column and one reason: how many rows, and the first one's number, counted from 1."""

    column: str
    reason: str
    rows: int
    first_row: int

    def __str__(self) -> str:
        many = f"{self.rows:,} rows, the first is row" if self.rows > 1 else "row"
        column = self.column if self.column in (WHOLE_ROW, OTHER_COLUMNS) else f"{self.column!r}"
        return f"{column}: {self.reason} ({many} {self.first_row:,})"


@dataclass
class BadRows:
    """A count under way, of rows that do not fit a space."""

    space: FeatureSpace
    ignore_sensitive: bool = False
    open_limits: bool = False  # whether people outside the limits of shared columns may be decided
    rows: int = 0
    reasons: dict[str, dict[str, BadKind]] = field(default_factory=dict)  # by column, then reason

    def add(self, row: Chunk, error: DomainError) -> None:
        """Count one row with everything that is wrong with it; `error` is what refused it."""
        self.rows += 1
        number = row.start + 1
        if row.problems:
            self._count(WHOLE_ROW, row_reason(row.problems[0]), number)
            return
        found = self._problems(row)
        if not found:
            column = error.column if error.column in row.columns else None
            found = {column or WHOLE_ROW: self._reason(row, error, column)}
        for column, reason in found.items():
            self._count(column, reason, number)

    def _reason(self, row: Chunk, error: DomainError, column: str | None) -> str:
        """Return why a row was rejected whose columns are all valid: it is outside the limits."""
        what = error.what or str(error)
        if column is None or "because " not in what:
            return _short(what)
        outside = cell_reason(self.space.attribute(column), row.columns[column][0])
        return _short(f"{outside}; {what.partition('because ')[2]}")

    def _problems(self, row: Chunk) -> dict[str, str]:
        """Try each column alone, since reading stops at the first that is wrong."""
        found: dict[str, str] = {}
        for name, (attribute, space) in self._columns.items():
            if name in row.columns:
                try:
                    ignored = not self.space.is_sensitive(attribute)
                    admit = _anybody if self.open_limits else None
                    row.encode(space, ignore_sensitive=ignored, admit=admit)
                except DomainError as error:
                    found[name] = cell_reason(attribute, row.columns[name][0]) or _short(error.what)
        return found

    @cached_property
    def _columns(self) -> dict[str, tuple[Attribute, FeatureSpace]]:
        """The columns that are read, each with a space of its own."""
        return {
            one.name: (one, _alone(one))
            for one in self.space.attributes
            if not isinstance(one, Derived)
            and not (self.ignore_sensitive and self.space.is_sensitive(one))
        }

    def _count(self, column: str, reason: str, row: int) -> None:
        if column not in self.reasons and len(self.reasons) >= MAX_COLUMNS:
            column, reason = OTHER_COLUMNS, OTHER_REASONS
        kinds = self.reasons.setdefault(column, {})
        if reason not in kinds and len(kinds) >= MAX_REASONS:
            reason = OTHER_REASONS
        before = kinds.get(reason)
        rows, first = (0, row) if before is None else (before.rows, before.first_row)
        kinds[reason] = BadKind(column, reason, rows + 1, first)

    @property
    def kinds(self) -> tuple[BadKind, ...]:
        """All kinds of problems, the most frequent first."""
        listed = [kind for kinds in self.reasons.values() for kind in kinds.values()]
        return tuple(sorted(listed, key=lambda kind: (-kind.rows, kind.first_row)))


def survey(
    table: TableFile,
    wanted: Collection[str],
    space: FeatureSpace,
    formats: Formats,
    *,
    ignore_sensitive: bool,
    admit: Admit = None,
) -> BadRows:
    """Count the bad rows of a whole table, up to where it cannot be read any further."""
    bad = BadRows(space, ignore_sensitive, open_limits=admit is not None)
    with suppress(DomainError):
        for chunk in table.chunks(wanted, typed=formats):
            try:
                chunk.encode(space, ignore_sensitive=ignore_sensitive, admit=admit)
            except DomainError:
                for index in range(len(chunk)):
                    row = chunk.row(index)
                    try:
                        row.encode(space, ignore_sensitive=ignore_sensitive, admit=admit)
                    except DomainError as error:
                        bad.add(row, error)
    return bad


def note_all_problems(
    error: DomainError,
    table: TableFile,
    wanted: Collection[str],
    space: FeatureSpace,
    formats: Formats,
    *,
    ignore_sensitive: bool = False,
    admit: Admit = None,
) -> None:
    """Add to an error about one row what else is wrong with its table."""
    bad = survey(table, wanted, space, formats, ignore_sensitive=ignore_sensitive, admit=admit)
    if len(bad.kinds) > 1 or bad.rows > 1:
        error.add_note(f"{bad.rows:,} rows of the table cannot be read, by column and reason:")
        for line in listed_kinds(bad.kinds):
            error.add_note(f"- {line}")
        error.add_note("correct the table or the schema, or leave such rows out: --skip-bad-rows")


def listed_kinds(kinds: tuple[BadKind, ...]) -> list[str]:
    """Return one line per kind of problem, the most frequent first, and how many are left out."""
    more = len(kinds) - MAX_LISTED
    rest = [f"and {more:,} more kinds of problems"] if more > 0 else []
    return [*map(str, kinds[:MAX_LISTED]), *rest]


def row_reason(problem: str) -> str:
    """Return why a row could not be taken apart, in short."""
    return WRONG_CELLS if problem.startswith(WRONG_CELLS) else _short(problem)


def cell_reason(attribute: Attribute, cell: object) -> str:
    """Return why a cell is outside an attribute's domain; empty if that is not the reason."""
    if _empty(cell):
        return "empty cell"
    if isinstance(attribute, Categorical):
        return f"not one of the listed values: {_short(repr(cell))}"
    number = parse_number(cell) if isinstance(cell, str) else cell
    if isinstance(number, bool) or not isinstance(number, int | float):
        return f"not a number: {_short(repr(cell))}"
    if not math.isfinite(number):
        return "not a finite number"
    return _number_reason(attribute, float(number))


def _number_reason(attribute: Attribute, number: float) -> str:
    match attribute:
        case Integer(low=low, high=high) | Real(low=low, high=high):
            least, most = low, high
        case Levels(numbers=numbers):
            least, most = numbers[0], numbers[-1]
        case _:
            return ""
    if number < least:
        return f"below the minimum {_plain_number(least)}"
    if number > most:
        return f"above the maximum {_plain_number(most)}"
    if isinstance(attribute, Integer) and number % 1:
        return "not an integer"
    if isinstance(attribute, Levels) and number not in attribute.numbers:
        return "not one of the listed numbers"
    return ""


def bad_kinds_json(kinds: tuple[BadKind, ...]) -> list[Mapping[str, object]]:
    """Return the kinds as plain values."""
    return [
        {"column": one.column, "reason": one.reason, "rows": one.rows, "first_row": one.first_row}
        for one in kinds
    ]


def _anybody(_people: Matrix) -> None:
    """Admit people outside limits: that alone is no problem."""


def _alone(attribute: Categorical | Integer | Levels | Real) -> FeatureSpace:
    """Make a space of one column; a space needs a sensitive one, which is then not read."""
    if attribute.sensitive:
        return FeatureSpace((attribute,))
    unread = Categorical(f"not {attribute.name}", ("",), sensitive=True)
    return FeatureSpace((attribute, unread))


def _empty(cell: object) -> bool:
    if isinstance(cell, str):
        return not cell.strip()
    return cell is None or str(cell) in ("nan", "NaT", "<NA>")


def _plain_number(number: float) -> str:
    return str(int(number)) if number == int(number) else repr(number)


def _short(text: str) -> str:
    half = SHOWN_CHARACTERS
    return text if len(text) <= 2 * half else f"{text[:half]}…{text[-half:]}"
