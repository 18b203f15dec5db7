"""Sentinels: rows that are evaluated throughout, to notice that the model was replaced."""

import time
from dataclasses import dataclass

import numpy as np

from feta.arrays import Counts, Matrix
from feta.errors import ModelChanged
from feta.scorer.counted.answers import RawAnswers
from feta.scorer.counted.calls import NOT_EVALUATED, ModelCalls, other_sizes
from feta.scorer.counted.repetition import Repetition

# Rows that are re-evaluated.
MAX_SENTINELS = 8

# They are re-evaluated after this many other rows, or after this many seconds.
ROWS_BETWEEN = 2**12
SECONDS_BETWEEN = 30.0


@dataclass(eq=False)
class Sentinels:
    """Rows with their first answers; mutable, because it remembers when they last agreed."""

    calls: ModelCalls
    people: Matrix
    answers: RawAnswers
    rows: int = 0  # evaluated by the model when the sentinels last agreed
    at: float = 0.0

    @classmethod
    def choose(cls, calls: ModelCalls, people: Matrix) -> "Sentinels":
        """Evaluate some rows in several ways; there are no sentinels if one of them differs.

        A model that is random or depends on the batch would look like a replaced one. Its rows
        are undecided anyway.
        """
        answers = calls.evaluate(people, [len(people)])
        valid = np.setdiff1d(np.arange(len(people)), list(answers.problems))[:MAX_SENTINELS]
        chosen = people[valid]
        if len(valid):
            answers = calls.evaluate(chosen, [len(valid)])
            ways: list[tuple[Counts, list[int]]] = [
                (np.arange(len(valid))[::-1], [len(valid)]),
                (np.arange(len(valid)), other_sizes(len(valid), 3)),
            ]
            for order, sizes in ways:
                again = calls.evaluate(chosen[order], sizes)
                if _different(calls, chosen, answers, again, order):
                    chosen = chosen[:0]
                    break
        return cls(calls, chosen, answers, calls.rows, time.monotonic())

    @property
    def due(self) -> bool:
        """Whether it is time to re-evaluate them."""
        rows, seconds = self.calls.rows - self.rows, time.monotonic() - self.at
        return rows >= ROWS_BETWEEN or (rows > 0 and seconds > SECONDS_BETWEEN)

    def check(self) -> None:
        """Raise `ModelChanged` if the model now answers differently, and repeats that answer."""
        if not len(self.people) or self.calls.spent:
            return
        since = self.calls.rows - self.rows
        order = np.arange(len(self.people))
        now = self._evaluate()
        message = _different(self.calls, self.people, self.answers, now, order)
        if message and not _different(self.calls, self.people, now, self._evaluate(), order):
            raise ModelChanged(
                f"the model changed during the work: {message}; expected the answer that it gave "
                f"at the start; the last {since:,} evaluated rows may mix two models, and their "
                "results are void; keep the model fixed, and start anew"
            )
        if not message:
            self.rows, self.at = self.calls.rows, time.monotonic()

    def _evaluate(self) -> RawAnswers:
        return self.calls.evaluate(self.people, [len(self.people)])


def _different(
    calls: ModelCalls, people: Matrix, first: RawAnswers, second: RawAnswers, order: Counts
) -> str:
    """Return a description of a row with different answers; empty if there is none."""
    if NOT_EVALUATED in second.problems.values():
        return ""
    rounding = calls.options.rounding
    repetition = Repetition(people, first, second, order, calls.describe, rounding, calls.ask.show)
    doubts = repetition.answers(together=False).doubts
    found = [doubt.message for doubt in doubts if doubt.kind == "nondeterministic"]
    return found[0] if found else ""
