"""Options of counted models: repetition, batches, limits and progress."""

from collections.abc import Callable
from dataclasses import dataclass

from feta.errors import SchemaError


@dataclass(frozen=True, slots=True)
class CountingProgress:
    """The number of rows that the model has evaluated, repeated ones included."""

    rows: int
    expected: int | None  # None if nobody stated it
    seconds: float

    @property
    def seconds_left(self) -> float | None:
        """The expected time until all rows are evaluated; None if it is not known."""
        if self.expected is None or not self.rows:
            return None
        return self.seconds * max(0, self.expected - self.rows) / self.rows


def unwatched_rows(_progress: CountingProgress) -> None:
    """Report nothing."""


@dataclass(frozen=True, slots=True)
class CountingOptions:
    """How a counted model is evaluated.

    Parameters
    ----------
    repeat
        The share of rows that are evaluated a second time, in other batches and another order.
        "Fair" means "repeated with equal answers" only with 1.0, the default.
    batch
        Rows per call. None: chosen once, when the model is read; a model whose answers depend on
        the batch then gives the same answers for the same person within one process only.
    timeout
        Seconds that one call may take; None for no limit.
    max_rows, max_seconds
        A budget of all evaluations together. When it is spent, people remain undecided.
    rounding
        Answers that differ by less, relative to 1 + their size, differ by rounding. None: 1e-9,
        and 2^-20 for a model that answers in float32.
    cache_bytes
        Memory for answers, so that no row is evaluated anew for the next question about a person.
    progress
        Called after each call of the model.
    """

    repeat: float = 1.0
    batch: int | None = None
    timeout: float | None = 600.0
    max_rows: int | None = None
    max_seconds: float | None = None
    rounding: float | None = None
    cache_bytes: int = 2**28
    progress: Callable[[CountingProgress], None] = unwatched_rows

    def __post_init__(self) -> None:
        if not 0 <= self.repeat <= 1:
            raise SchemaError(
                f"invalid share of repeated rows: got repeat={self.repeat!r}; expected a number "
                "from 0 to 1; 1 repeats every row"
            )
        if self.batch is not None and self.batch < 1:
            raise SchemaError(
                f"invalid batch: got batch={self.batch!r}; expected 1 or more rows per call"
            )
        for name in ("timeout", "max_rows", "max_seconds", "rounding"):
            limit = getattr(self, name)
            if limit is not None and not 0 <= limit < float("inf"):
                raise SchemaError(
                    f"invalid {name} of a counted model: got {limit!r}; expected a finite number "
                    "that is not negative, or None"
                )
