"""Errors: every exception FETA raises, and nothing else.

FetaError
├── SchemaError        a space, rule or schema that cannot be             (ValueError)
├── DomainError        a person outside the space                         (ValueError)
│   └── OutsideLimits  a person whom no proof covers beyond the limits
├── NetworkError       a network that cannot be read or is not finite     (ValueError)
├── DatasetError       a dataset that is not at hand, or is damaged       (ValueError)
├── EngineError        an engine that is unknown or cannot do this        (ValueError)
├── Undecided          people whose fair decision could not be settled    (RuntimeError)
├── CertificateError   a proof that does not hold; FETA never catches it  (RuntimeError)
└── MissingExtra       an optional package that is not installed          (ImportError)
"""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Self


class FetaError(Exception):
    """Whatever FETA raises."""


class SchemaError(FetaError, ValueError):
    """A space, rule or schema that cannot be."""


class DomainError(FetaError, ValueError):
    """A person outside the space; `column` and `row` (counted from 0) say where, if known."""

    def __init__(
        self, message: str, *, column: str | None = None, row: int | None = None, what: str = ""
    ) -> None:
        super().__init__(message)
        self.column = column
        self.row = row
        self.what = what  # the message without the place

    @classmethod
    def at(cls, column: str, row: int, what: str) -> Self:
        """Refuse the value of one column in one row."""
        return cls(f"{column!r} {what} (row {row})", column=column, row=row, what=what)


class OutsideLimits(DomainError):
    """A person outside the limits of a column, for whom the model's proofs cannot be made again."""


class NetworkError(FetaError, ValueError):
    """A network that cannot be read, or whose numbers are not finite."""


class DatasetError(FetaError, ValueError):
    """A dataset that is not at hand, or whose files are not what they should be."""


class EngineError(FetaError, ValueError):
    """An engine that is unknown, or cannot answer this kind of question."""


class Undecided(FetaError, RuntimeError):
    """People whose fair decision could not be settled within the budget; `rows` names them."""

    def __init__(self, rows: tuple[int, ...], reason: str) -> None:
        self.rows = rows
        shown = ", ".join(str(row) for row in rows[:10]) + (", …" if len(rows) > 10 else "")  # noqa: PLR2004
        who = "1 person" if len(rows) == 1 else f"{len(rows)} people"
        super().__init__(f"{who} could not be decided (rows {shown}): {reason}")


class CertificateError(FetaError, RuntimeError):
    """A proof that does not hold."""


class MissingExtra(FetaError, ImportError):
    """An optional package that is not installed; the message names its command."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"{package} is not installed; pip install 'feta-fair[{extra}]'")


def missing(name: str, known: Iterable[str]) -> str:
    """Say that a column is missing, what there is, and which of it may be meant."""
    names = list(known)
    near = get_close_matches(name, names, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return f"the table must have the column {name!r}; it has {_listed(names)}{hint}"


def _listed(names: Sequence[object]) -> str:
    return ", ".join(repr(one) for one in names[:12]) + (", …" if len(names) > 12 else "")  # noqa: PLR2004


def one_of(name: object, known: Iterable[object]) -> str:
    """Say what was allowed and got, and offer the nearest name."""
    shown = list(known)
    texts = [str(one) for one in shown]
    near = get_close_matches(str(name), texts, n=1)
    hint = f"; did you mean {shown[texts.index(near[0])]!r}?" if near else ""
    return f"one of {_listed(shown)}, got {name!r}{hint}"


def expected_one_of(value: object, known: Iterable[object]) -> str:
    """Return what was got and expected, with the closest known value as a hint."""
    names = list(known)
    texts = [str(name) for name in names]
    close = get_close_matches(str(value), texts, n=1)
    hint = f"; did you mean {names[texts.index(close[0])]!r}?" if close else ""
    return f"got {value!r}; expected one of {_listed(names)}{hint}"
