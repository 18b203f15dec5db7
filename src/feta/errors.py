"""All exceptions that FETA raises.

FetaError
├── SchemaError        an invalid space, rule or schema                     (ValueError)
├── DomainError        a person outside the space                           (ValueError)
│   └── OutsideLimits  a person outside the limits, for whom no proof holds
├── NetworkError       a network that is not supported or not finite        (ValueError)
│   └── ValueMismatch  a schema whose values an encoder of the model does not know
├── DatasetError       a dataset that is not available or damaged           (ValueError)
├── EngineError        an engine that is unknown or does not apply          (ValueError)
├── Undecided          people whose fair decision could not be computed     (RuntimeError)
├── CertificateError   a proof that does not hold; FETA never catches it    (RuntimeError)
├── ModelFailure       a counted model whose answers cannot be used         (RuntimeError)
│   ├── ModelChanged   a model whose answers changed during the work
│   ├── UnreliableAnswer  a score in doubt where a number is needed
│   └── ModelTimeout   a model that does not answer in time                 (TimeoutError)
└── MissingExtra       an optional package that is not installed            (ImportError)
"""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Self

# More rows or names than this are abbreviated in messages.
MAX_SHOWN_ROWS = 10
MAX_SHOWN_NAMES = 12


class FetaError(Exception):
    """The base class of all exceptions that FETA raises."""


class SchemaError(FetaError, ValueError):
    """An invalid space, rule or schema."""


class DomainError(FetaError, ValueError):
    """A person outside the space; `column` and `row` (counted from 0) locate the value if known."""

    def __init__(
        self, message: str, *, column: str | None = None, row: int | None = None, what: str = ""
    ) -> None:
        super().__init__(message)
        self.column = column
        self.row = row
        self.what = what  # the message without column and row

    @classmethod
    def at(cls, column: str, row: int, what: str) -> Self:
        """Return the error for the value of one column in one row."""
        return cls(f"{column!r} {what} (row {row})", column=column, row=row, what=what)


class OutsideLimits(DomainError):
    """A person outside the limits of a column, for whom the model's proofs do not hold."""


class NetworkError(FetaError, ValueError):
    """A network that is not supported, or whose numbers are not finite."""


class ValueMismatch(NetworkError):
    """A schema whose values contradict those that an encoder of the model knows."""


class DatasetError(FetaError, ValueError):
    """A dataset that is not available, or whose files are damaged."""


class EngineError(FetaError, ValueError):
    """An engine that is unknown, or does not apply to the query."""


class Undecided(FetaError, RuntimeError):
    """People whose fair decision could not be computed within the budget; `rows` lists them."""

    def __init__(self, rows: tuple[int, ...], reason: str) -> None:
        self.rows = rows
        self.reason = reason
        shown = ", ".join(str(row) for row in rows[:MAX_SHOWN_ROWS])
        more = ", …" if len(rows) > MAX_SHOWN_ROWS else ""
        who = "1 person" if len(rows) == 1 else f"{len(rows)} people"
        super().__init__(f"{who} could not be decided (rows {shown}{more}): {reason}")


class CertificateError(FetaError, RuntimeError):
    """A proof that does not hold."""


class ModelFailure(FetaError, RuntimeError):
    """A counted model whose answers cannot be used."""


class ModelChanged(ModelFailure):
    """A counted model whose answers to the same rows changed during the work."""


class UnreliableAnswer(ModelFailure):
    """A score of a counted model that is in doubt, where its number is needed."""


class ModelTimeout(ModelFailure, TimeoutError):
    """A counted model that does not answer in time."""


class MissingExtra(FetaError, ImportError):
    """An optional package that is not installed; the message contains the command to install it."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"{package} is not installed; pip install 'feta-fair[{extra}]'")


def missing(name: str, known: Iterable[str], *, owner: str = "table") -> str:
    """Return a message for a missing column, with the existing columns and the nearest name."""
    names = list(known)
    listed = _join_quoted(names)
    return f"the {owner} must have the column {name!r}; it has {listed}{_suggestion(name, names)}"


def unknown_choice(value: object, choices: Iterable[object]) -> str:
    """Return "got …; expected one of …" for an unknown value, with the nearest choice."""
    options = list(choices)
    return f"got {value!r}; expected one of {_join_quoted(options)}{_suggestion(value, options)}"


def _suggestion(value: object, choices: Sequence[object]) -> str:
    texts = [str(choice) for choice in choices]
    near = get_close_matches(str(value), texts, n=1)
    return f"; did you mean {choices[texts.index(near[0])]!r}?" if near else ""


def _join_quoted(names: Sequence[object]) -> str:
    more = ", …" if len(names) > MAX_SHOWN_NAMES else ""
    return ", ".join(repr(name) for name in names[:MAX_SHOWN_NAMES]) + more
