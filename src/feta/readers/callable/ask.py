"""The user's function on encoded people: the table, the call, and the answers as numbers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from feta.arrays import Array, Counts, Matrix, Vector
from feta.readers.callable.parse import Labels, Parser
from feta.readers.callable.tables import ModelTable
from feta.scorer.counted.answers import RawAnswers


@dataclass(frozen=True, slots=True, eq=False)
class AskCallable:
    """A function, its table and its parser.

    With `predict` and its `classes`, the function gives scores, and `predict` decides: a row on
    which both disagree has no valid answer.
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
        if self.predict is None or self.classes is None:
            return self.parser.parse(self.function(table), n_rows)
        # Each function gets its own rows, because it may change them.
        answers = self.parser.parse(self.function(copied(table)), n_rows)
        decided = Labels(self.classes).parse(self.predict(table), n_rows)
        chosen, implied = np.argmax(decided.values, axis=1), implied_classes(answers.values)
        problems = {**decided.problems, **answers.problems}
        for row in np.flatnonzero(chosen != implied).tolist():
            if row not in problems:
                problems[row] = self._conflict(answers.values[row], chosen[row], implied[row])
        return RawAnswers(answers.values, problems, answers.rounding)

    def show(self, values: Vector) -> str:
        """Return the answer to one row, for messages."""
        return self.parser.show(values)

    def _conflict(self, scores: Vector, chosen: int, implied: int) -> str:
        assert self.classes is not None  # `predict` decides
        labels = self.classes.tolist()
        return (
            f"predict answered {labels[chosen]!r}, but the scores {self.show(scores)} mean "
            f"{labels[implied]!r}; count the labels of predict alone (--method labels, or "
            "function='predict' in Python), or compare the scores with a level"
        )


def copied(table: Any) -> Any:  # noqa: ANN401 - a frame or an array
    """Return rows that a function may change."""
    return table.copy() if hasattr(table, "copy") else table


def implied_classes(values: Matrix) -> Counts:
    """Return the class that scores mean: above 0 for one score, else the first largest."""
    if values.shape[1] == 1:
        return np.asarray(values[:, 0] > 0).astype(np.int64)
    return np.argmax(values, axis=1)
