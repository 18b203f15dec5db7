"""Calls of the user's model: batches, failures, time limits, budget and progress."""

import time
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from feta.arrays import Matrix, Vector
from feta.errors import FetaError, ModelTimeout
from feta.scorer.counted.answers import AskModel, InvalidAnswers, RawAnswers, joined
from feta.scorer.counted.options import CountingOptions, CountingProgress
from feta.scorer.counted.timed_call import TookTooLong, call_within
from feta.space.feature_space import FeatureSpace

# Calls that look for the rows on which the model fails, per failed batch. They find about ten
# rows in a batch of 2^14.
MAX_SEARCH_CALLS = 128

# Maximum characters of an error message of the model.
MAX_CHARACTERS = 300

NOT_EVALUATED = "it was not evaluated twice: the budget of the counted model is spent"


@dataclass(eq=False)
class ModelCalls:
    """All calls of one model; it counts them, so it is mutable."""

    ask: AskModel
    space: FeatureSpace
    options: CountingOptions
    started: float = field(default_factory=time.monotonic)
    rows: int = 0
    calls: int = 0
    seconds: float = 0.0  # inside the model
    seconds_per_row: float | None = None  # in full batches, if it was measured
    expected: int | None = None
    hangs: str = ""  # the message of a call that did not return: no more calls are made

    def evaluate(self, people: Matrix, sizes: Iterable[int]) -> RawAnswers:
        """Evaluate people in batches of these sizes, in this order."""
        parts, start = [RawAnswers.none(0, self.ask.n_answers, "")], 0
        for size in sizes:
            parts.append(self._batch(people[start : start + size]))
            start += size
        assert start >= len(people)  # every row belongs to a batch
        return joined(parts)

    @property
    def spent(self) -> bool:
        """Whether the budget is spent."""
        options = self.options
        late = (
            options.max_seconds is not None
            and time.monotonic() - self.started > options.max_seconds
        )
        return late or (options.max_rows is not None and self.rows >= options.max_rows)

    def describe(self, person: Vector) -> str:
        """Return a person's raw values, for messages."""
        values = self.space.decode(person)
        return ", ".join(f"{name} {value!r}" for name, value in values.items())

    def _batch(self, people: Matrix) -> RawAnswers:
        if self.spent:
            return RawAnswers.none(len(people), self.ask.n_answers, NOT_EVALUATED)
        answers = self._call(people)
        if isinstance(answers, RawAnswers):
            return answers
        return self._search(people, answers)

    def _search(self, people: Matrix, problem: str) -> RawAnswers:
        """Find the rows on which the model fails, by halving; the others get their answers."""
        n_answers, left = self.ask.n_answers, MAX_SEARCH_CALLS
        parts: list[RawAnswers] = []
        stack: list[tuple[Matrix, str]] = [(people, problem)]  # no problem: not yet evaluated
        while stack:
            rows, reason = stack.pop()
            if not reason and left > 0 and not self.spent:
                left -= 1
                answers = self._call(rows)
                if isinstance(answers, RawAnswers):
                    parts.append(answers)
                    continue
                reason = answers
            if len(rows) == 1 or left <= 0 or self.spent:
                parts.append(RawAnswers.none(len(rows), n_answers, reason or problem))
                continue
            middle = len(rows) // 2
            stack += [(rows[middle:], ""), (rows[:middle], "")]
        return joined(parts)

    def _call(self, people: Matrix) -> RawAnswers | str:
        """Evaluate one batch; return the message of an error of the model."""
        if self.hangs:
            raise ModelTimeout(self.hangs)
        answers: RawAnswers | str
        begun = time.monotonic()
        try:
            answers = call_within(self.options.timeout, lambda: self.ask(people))
        except TookTooLong:
            raise self._timeout(people) from None
        except FetaError:
            raise
        except InvalidAnswers as error:
            answers = str(error)
        except Exception as error:  # the user's code may raise anything
            reason = " ".join(str(error).split())[:MAX_CHARACTERS]
            answers = f"the model raised {type(error).__name__}: {reason}"
        self.seconds += time.monotonic() - begun
        self._count(len(people))
        return answers

    def _timeout(self, people: Matrix) -> ModelTimeout:
        self.hangs = (
            f"the model does not answer: got no answer for {len(people):,} rows within "
            f"{self.options.timeout:g} s, the first row is ({self.describe(people[0])}); expected "
            "an answer in that time; pass a larger timeout (--timeout) if the model is only slow"
        )
        return ModelTimeout(self.hangs)

    def _count(self, n_rows: int) -> None:
        self.calls += 1
        self.rows += n_rows
        seconds = time.monotonic() - self.started
        self.options.progress(CountingProgress(self.rows, self.expected, seconds))


def equal_sizes(n_rows: int, batch: int) -> list[int]:
    """Return the sizes of canonical batches: all are full but the last."""
    full, rest = divmod(n_rows, batch)
    return [batch] * full + ([rest] if rest else [])


def other_sizes(n_rows: int, batch: int) -> list[int]:
    """Return sizes of batches that differ from the canonical ones: one row, then smaller ones."""
    if n_rows < 2:  # noqa: PLR2004 - one row has only one batch
        return [1] * n_rows
    smaller = max(1, batch * 5 // 8)
    rest = n_rows - 1
    return [1, rest] if rest <= smaller else [1, *equal_sizes(rest, smaller)]


def fastest_batch(calls: ModelCalls, people: Matrix, *, largest: int) -> int:
    """Return a batch in which the cost of the call itself is small, from two timed calls.

    A call costs a part per row and a part of its own. The batch is large enough that its own part
    is a tenth, and small enough that a call takes no longer than `SLOW_SECONDS`.
    """
    small, large = (min(size, largest) for size in TIMED_ROWS)
    if small == large or calls.spent:
        return small
    before, after = (_seconds(calls, people, size) for size in (small, large))
    per_row = max((after - before) / (large - small), after * NEGLIGIBLE)
    own = max(0.0, before - small * per_row)
    wanted = min(own / (OWN_SHARE * per_row), (SLOW_SECONDS - own) / per_row)
    batch = small
    while batch < wanted and 2 * batch <= largest:
        batch *= 2
    calls.seconds_per_row = per_row + own / batch
    return batch


def _seconds(calls: ModelCalls, people: Matrix, n_rows: int) -> float:
    begun = time.perf_counter()
    calls.evaluate(np.resize(people, (n_rows, people.shape[1])), [n_rows])
    return time.perf_counter() - begun


# The rows of the two calls that are timed, the part of a call's time that may be its own, the time
# of a call that is long enough, and the part of a call's time that a row takes at least.
TIMED_ROWS = (64, 256)
OWN_SHARE = 0.1
SLOW_SECONDS = 0.25
NEGLIGIBLE = 1e-6
