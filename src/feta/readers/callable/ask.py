"""The user's function on encoded people: the table, the call, and the answers as numbers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from feta.arrays import Array, Counts, Flags, Matrix
from feta.readers.callable.parse import Parser, as_array
from feta.readers.callable.tables import ModelTable
from feta.scorer.counted.answers import RawAnswers

# Scores of two classes that are closer, relative to 1 + their size, may be a tie for `predict`.
NEAR_TIE = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class AskCallable:
    """A function, its table and its parser.

    With `predict` and its `classes`, near ties of scores are compared with what `predict` decides:
    a row on which both disagree has no valid answer.
    """

    table: ModelTable
    function: Callable[[Any], Any]
    parser: Parser
    predict: Callable[[Any], Any] | None = None
    classes: Array | None = None

    @property
    def n_answers(self) -> int:
        """The number of numbers that the function returns for a person."""
        return self.parser.n_answers

    @property
    def columns(self) -> Counts:
        """The encoded columns that reach the function."""
        return self.table.columns

    def __call__(self, people: Matrix) -> RawAnswers:
        """Evaluate people in one call."""
        table = self.table.make(people)
        return self.answer(table, len(people))

    def answer(self, table: Any, n_rows: int) -> RawAnswers:  # noqa: ANN401 - a frame or an array
        """Evaluate the rows of a table."""
        answers = self.parser.parse(self.function(table), n_rows)
        if self.predict is None or self.classes is None:
            return answers
        near = np.flatnonzero(_near_ties(answers.values))
        near = near[~np.isin(near, list(answers.problems))]
        if not near.size:
            return answers
        problems = dict(answers.problems)
        part = table.iloc[near] if hasattr(table, "iloc") else table[near]
        labels = as_array(self.predict(part)).reshape(-1)
        implied = self.classes[implied_classes(answers.values[near])]
        decided = zip(near.tolist(), labels.tolist(), implied.tolist(), strict=True)
        for row, label, other in decided:
            if label != other:
                problems[row] = (
                    f"predict answered {label!r}, but the scores {answers.values[row].tolist()} "
                    f"mean {other!r}"
                )
        return RawAnswers(answers.values, problems, answers.rounding)


def implied_classes(values: Matrix) -> Counts:
    """Return the class that scores mean: above 0 for one score, else the first largest."""
    if values.shape[1] == 1:
        return np.asarray(values[:, 0] > 0).astype(np.int64)
    return np.argmax(values, axis=1)


def _near_ties(values: Matrix) -> Flags:
    if values.shape[1] == 1:
        return np.asarray(np.abs(values[:, 0]) <= NEAR_TIE)
    second, first = np.sort(values, axis=1)[:, -2:].T
    return np.asarray(first - second <= NEAR_TIE * (1 + np.abs(first)))
