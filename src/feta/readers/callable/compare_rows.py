"""Comparison of the user's rows with the rows that FETA builds, by the answers of a function."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from feta.arrays import Flags, Matrix
from feta.errors import ModelTimeout
from feta.readers.callable.ask import AskCallable, copied
from feta.readers.comparison import Comparison
from feta.scorer.counted.answers import RawAnswers
from feta.scorer.counted.counted import Counted
from feta.scorer.counted.timed_call import TookTooLong, call_within

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True, eq=False)
class RowComparison:
    """A function evaluated on rows as the table holds them, and as FETA builds them.

    Both tables have the same rows in the same order, so that a function that depends on its batch
    answers both alike. Where it contradicts itself, nothing is compared: its people are undecided.
    """

    scorer: Counted
    ask: AskCallable
    name: str

    def __call__(
        self, people: Matrix, frame: "pd.DataFrame | None", rows: list[int] | None
    ) -> Comparison:
        """Compare people with the rows of a frame; without a frame there is nothing to compare."""
        if frame is None or self.ask.table.names is None:
            return Comparison(self.name, on_table=False)
        original = frame[list(self.ask.table.names)]
        total = Comparison(self.name, on_table=True)
        batch = self.scorer.evaluator.batch
        for start in range(0, len(people), batch):
            part = slice(start, start + batch)
            numbers = list(range(start, start + batch)) if rows is None else rows[part]
            total += self._compare(people[part], original.iloc[part], numbers)
        return total

    def _compare(self, people: Matrix, original: "pd.DataFrame", rows: list[int]) -> Comparison:
        table = self.ask.table
        given: Any = original if table.as_frame else original.to_numpy()
        built = table.make(people)
        first, second = self._answers(given, people), self._answers(built, people)
        if first is None or second is None:
            return Comparison(self.name, on_table=True, failed=len(people))
        nothing = Comparison(self.name, len(people), on_table=True)
        differs = _different(first, second)
        if differs.any():
            again = (self._answers(given, people), self._answers(built, people))
            for before, after in zip((first, second), again, strict=True):
                differs &= after is not None and not _different(before, after).any()
        if not differs.any():
            return nothing
        row = int(np.argmax(differs))
        shown = self.scorer.evaluator.calls.describe(people[row])
        both = [_shown(answers, row) for answers in (first, second)]
        description = (
            f"row {rows[row] + 1} ({shown}): the model answers {both[0]} to the row of the table, "
            f"and {both[1]} to the row that FETA builds from it"
        )
        count = int(differs.sum())
        return Comparison(self.name, len(people), count, count, first=description, on_table=True)

    def _answers(self, table: Any, people: Matrix) -> RawAnswers | None:  # noqa: ANN401 - a frame or an array
        """Evaluate a table; None if the function fails, which an audit shows person by person."""
        calls = self.scorer.evaluator.calls
        try:
            return call_within(
                calls.options.timeout, lambda: self.ask.answer(copied(table), len(people))
            )
        except TookTooLong:
            raise ModelTimeout(
                f"the model does not answer: got no answer for {len(people):,} rows of the table "
                f"within {calls.options.timeout:g} s, the first row is "
                f"({calls.describe(people[0])}); expected an answer in that time; pass a larger "
                "timeout if the model is only slow"
            ) from None
        except Exception:  # the user's code may raise anything
            return None


def _different(first: RawAnswers, second: RawAnswers) -> Flags:
    size = 1 + np.maximum(np.abs(first.values), np.abs(second.values))
    far = np.abs(first.values - second.values) > max(first.rounding, second.rounding) * size
    different: Flags = np.array(far.any(axis=1))
    for row in {*first.problems, *second.problems}:
        different[row] = (row in first.problems) != (row in second.problems)
    return different


def _shown(answers: RawAnswers, row: int) -> str:
    values = answers.values[row].tolist()
    text = repr(values[0]) if len(values) == 1 else repr(tuple(values))
    return answers.problems.get(row, text)
