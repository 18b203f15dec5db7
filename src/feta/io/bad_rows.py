"""Bad rows: the numbers of table rows that cannot be read, by column and reason.

Reasons are short and stable, so that equal problems are counted together. Their memory is bounded:
if a column has too many different problems, the later ones are counted as one kind.
"""

import math
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import cached_property, partial

from feta.arrays import Matrix
from feta.errors import DomainError
from feta.io.cell_text import parse_number
from feta.io.chunk import Chunk
from feta.io.column_format import Formats
from feta.io.csv_table import WRONG_CELLS
from feta.io.table_file import TableFile
from feta.space.attribute import Attribute, Categorical, Derived, Integer, Levels, Real
from feta.space.feature_space import FeatureSpace

# Different reasons per column, and columns with reasons; further ones are counted together.
MAX_REASONS = 20
MAX_COLUMNS = 200

# Kinds of problems that are listed.
MAX_LISTED = 12

# Characters at each end of a long text that a reason shows.
SHOWN_CHARACTERS = 40

# Raises for people outside the limits of shared columns who cannot be decided; see `Chunk.encode`.
Admit = Callable[[Matrix], None] | None

OTHER_REASONS = "other problems"
OTHER_COLUMNS = "other columns"
WHOLE_ROW = "the row"


@dataclass(frozen=True, slots=True)
class BadKind:
    """The rows with one reason in one column: how many, and the first, counted from 1."""

    column: str
    reason: str
    rows: int
    first_row: int

    def __str__(self) -> str:
        rows = f"{self.rows:,} rows, the first is row" if self.rows > 1 else "row"
        column = self.column if self.column in (WHOLE_ROW, OTHER_COLUMNS) else f"{self.column!r}"
        return f"{column}: {self.reason} ({rows} {self.first_row:,})"


@dataclass
class BadRows:
    """A running count of the rows that do not fit a space."""

    space: FeatureSpace
    ignore_sensitive: bool = False
    open_limits: bool = False  # whether people outside the limits of shared columns may be decided
    rows: int = 0
    reasons: dict[str, dict[str, BadKind]] = field(default_factory=dict)  # by column, then reason

    def add(self, row: Chunk, error: DomainError, *, before: int = 0) -> None:
        """Count a row with all its problems; `error` is the one that rejected it.

        `before` rows of the table are in files before that of the chunk.
        """
        self.rows += 1
        number = before + row.start + 1
        if row.problems:
            self.count(BadKind(WHOLE_ROW, row_reason(row.problems[0]), 1, number))
            return
        problems = self._problems(row)
        if not problems:
            column = error.column if error.column in row.columns else None
            problems = {column or WHOLE_ROW: self._reason(row, error, column)}
        for column, reason in problems.items():
            self.count(BadKind(column, reason, 1, number))

    def _reason(self, row: Chunk, error: DomainError, column: str | None) -> str:
        """Return why a row was rejected whose columns are all valid: it is outside the limits."""
        what = error.what or str(error)
        if column is None or "because " not in what:
            return _short(what)
        outside = cell_reason(self.space.attribute(column), row.columns[column][0])
        return _short(f"{outside}; {what.partition('because ')[2]}")

    def _problems(self, row: Chunk) -> dict[str, str]:
        """Return the reason of each invalid column.

        Each column is read separately, because reading a row stops at the first problem.
        """
        problems: dict[str, str] = {}
        for name, (attribute, space) in self._columns.items():
            if name in row.columns:
                try:
                    ignored = not self.space.is_sensitive(attribute)
                    admit = _admit_everybody if self.open_limits else None
                    row.encode(space, ignore_sensitive=ignored, admit=admit)
                except DomainError as error:
                    reason = cell_reason(attribute, row.columns[name][0])
                    problems[name] = reason or _short(error.what)
        return problems

    @cached_property
    def _columns(self) -> dict[str, tuple[Attribute, FeatureSpace]]:
        """The columns that are read, each with a space of this column only."""
        return {
            attribute.name: (attribute, _single_column_space(attribute))
            for attribute in self.space.attributes
            if not isinstance(attribute, Derived)
            and not (self.ignore_sensitive and self.space.is_sensitive(attribute))
        }

    def count(self, kind: BadKind) -> None:
        """Add rows with one reason, which come after those that are counted."""
        column, reason = kind.column, kind.reason
        if column not in self.reasons and len(self.reasons) >= MAX_COLUMNS:
            column, reason = OTHER_COLUMNS, OTHER_REASONS
        kinds = self.reasons.setdefault(column, {})
        if reason not in kinds and len(kinds) >= MAX_REASONS:
            reason = OTHER_REASONS
        before = kinds.get(reason)
        rows, first = (0, kind.first_row) if before is None else (before.rows, before.first_row)
        kinds[reason] = BadKind(column, reason, rows + kind.rows, first)

    def merged(self, other: "BadRows") -> "BadRows":
        """Return the bad rows of both parts of a table, which are numbered alike."""
        both = BadRows(self.space, self.ignore_sensitive, self.open_limits, self.rows + other.rows)
        both.reasons = {column: dict(kinds) for column, kinds in self.reasons.items()}
        for kinds in other.reasons.values():
            for kind in kinds.values():
                both.count(kind)
        return both

    @property
    def kinds(self) -> tuple[BadKind, ...]:
        """All kinds of problems, the most frequent first."""
        listed = [kind for kinds in self.reasons.values() for kind in kinds.values()]
        return tuple(sorted(listed, key=lambda kind: (-kind.rows, kind.first_row)))


def count_bad_rows(
    table: TableFile,
    names: Collection[str],
    space: FeatureSpace,
    formats: Formats,
    *,
    ignore_sensitive: bool,
    admit: Admit = None,
) -> BadRows:
    """Count the bad rows of a table, up to the point where it cannot be read any further."""
    bad = BadRows(space, ignore_sensitive, open_limits=admit is not None)
    encode = partial(Chunk.encode, space=space, ignore_sensitive=ignore_sensitive, admit=admit)
    with suppress(DomainError):
        for chunk in table.chunks(names, typed=formats):
            for rows, result in chunk.attempts(encode):
                if isinstance(result, DomainError):
                    bad.add(chunk.take(rows), result)
    return bad


def note_all_problems(
    error: DomainError,
    table: TableFile,
    names: Collection[str],
    space: FeatureSpace,
    formats: Formats,
    *,
    ignore_sensitive: bool = False,
    admit: Admit = None,
) -> None:
    """Add notes about all bad rows of a table to an error about one of them."""
    bad = count_bad_rows(
        table, names, space, formats, ignore_sensitive=ignore_sensitive, admit=admit
    )
    if len(bad.kinds) > 1 or bad.rows > 1:
        error.add_note(f"{bad.rows:,} rows of the table cannot be read, by column and reason:")
        for line in listed_kinds(bad.kinds):
            error.add_note(f"- {line}")
        error.add_note("correct the table or the schema, or skip such rows with --skip-bad-rows")


def listed_kinds(kinds: tuple[BadKind, ...]) -> list[str]:
    """Return one line per kind of problem, and the number of kinds that are not listed."""
    more = len(kinds) - MAX_LISTED
    rest = [f"and {more:,} more kinds of problems"] if more > 0 else []
    return [*map(str, kinds[:MAX_LISTED]), *rest]


def row_reason(problem: str) -> str:
    """Return a short reason why a row could not be split into cells."""
    return WRONG_CELLS if problem.startswith(WRONG_CELLS) else _short(problem)


def cell_reason(attribute: Attribute, cell: object) -> str:
    """Return why a cell is outside an attribute's domain; empty if that is not the reason."""
    if _is_empty(cell):
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
            lowest, highest = low, high
        case Levels(numbers=numbers):
            lowest, highest = numbers[0], numbers[-1]
        case _:
            return ""
    if number < lowest:
        return f"below the minimum {_plain_number(lowest)}"
    if number > highest:
        return f"above the maximum {_plain_number(highest)}"
    if isinstance(attribute, Integer) and number % 1:
        return "not an integer"
    if isinstance(attribute, Levels) and number not in attribute.numbers:
        return "not one of the listed numbers"
    return ""


def bad_kinds_json(kinds: tuple[BadKind, ...]) -> list[Mapping[str, object]]:
    """Return the kinds as plain values."""
    return [asdict(kind) for kind in kinds]


def _admit_everybody(_people: Matrix) -> None:
    """Accept people outside the limits of shared columns."""


def _single_column_space(attribute: Categorical | Integer | Levels | Real) -> FeatureSpace:
    """Return a space of one column, with a sensitive one that is not read if there must be one."""
    if attribute.sensitive:
        return FeatureSpace((attribute,))
    unread = Categorical(f"not {attribute.name}", ("",), sensitive=True)
    return FeatureSpace((attribute, unread))


def _is_empty(cell: object) -> bool:
    if isinstance(cell, str):
        return not cell.strip()
    return cell is None or str(cell) in ("nan", "NaT", "<NA>")


def _plain_number(number: float) -> str:
    return str(int(number)) if number == int(number) else repr(number)


def _short(text: str) -> str:
    half = SHOWN_CHARACTERS
    return text if len(text) <= 2 * half else f"{text[:half]}…{text[-half:]}"
