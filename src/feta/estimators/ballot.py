"""Votes of a person's counterparts, counted with the estimator's own `predict`."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from feta.arrays import Counts, Matrix, Vector
from feta.errors import EngineError
from feta.estimators.layout import Table
from feta.io.raw_table import RawTable
from feta.space.feature_space import FeatureSpace
from feta.space.lattice import BLOCK
from feta.space.vote_weights import VoteWeights

Predictions = NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Ballot:
    """Votes counted with an estimator's own `predict`.

    `predict` is evaluated on the counterparts of one person only, always in the same blocks. So
    the votes depend on the person's shared columns only, whatever `predict` does with a batch.
    """

    space: FeatureSpace
    estimator: Any
    table: RawTable | None  # None: the estimator takes encoded rows
    weights: VoteWeights | None = None

    def count(self, person: Vector, classes: Predictions) -> Counts:
        """Count the votes for each class."""
        total = np.zeros(len(classes), dtype=np.int64)
        for answers, votes in self._answers(person):
            matches = [answers == label for label in classes]
            if sum(int(np.sum(flags)) for flags in matches) != len(answers):
                shown = " or ".join(repr(label) for label in classes[:8])
                raise _invalid_answers(shown, len(votes), answers)
            total += np.array([votes[flags].sum() for flags in matches], dtype=np.int64)
        return total

    def median(self, person: Vector) -> float:
        """Return the lower median of the answers, weighted by their votes."""
        scores, votes = self._numbers(person)
        order = np.argsort(scores, kind="stable")
        cumulative = np.cumsum(votes[order])
        return float(scores[order][np.searchsorted(2 * cumulative, cumulative[-1])])

    def mean(self, person: Vector) -> float:
        """Return the mean of the answers, weighted by their votes and rounded once."""
        scores, votes = self._numbers(person)
        pairs = zip(scores.tolist(), votes.tolist(), strict=True)
        total = sum((Fraction(score) * vote for score, vote in pairs), Fraction(0))
        return float(total / int(votes.sum()))

    def _numbers(self, person: Vector) -> tuple[Vector, Counts]:
        """Return the answers as numbers, and the votes of each."""
        blocks = list(self._answers(person))
        votes = np.concatenate([votes for _, votes in blocks])
        try:
            scores = np.concatenate([np.asarray(part, dtype=np.float64) for part, _ in blocks])
        except (TypeError, ValueError):
            scores = np.array([np.nan])
        if not np.isfinite(scores).all():
            raise _invalid_answers("a finite number", len(votes), blocks[0][0])
        return scores, votes

    def _answers(self, person: Vector) -> Iterator[tuple[Predictions, Counts]]:
        for block, votes in self._blocks(person):
            answers = np.asarray(self.estimator.predict(self._table(block)))
            if answers.shape != (len(block),):
                raise _invalid_answers("one answer", len(block), answers)
            yield answers, votes

    def _blocks(self, person: Vector) -> Iterator[tuple[Matrix, Counts]]:
        lattice, weights = self.space.lattice, self.weights
        if weights is None:
            for block in lattice.counterparts(person):
                yield block, np.ones(len(block), dtype=np.int64)
            return
        for start in range(0, len(weights.assignment_ids), BLOCK):
            ids = weights.assignment_ids[start : start + BLOCK]
            block = lattice.moved(np.repeat(person[None, :], len(ids), axis=0), ids)
            yield block, weights.votes[start : start + BLOCK]

    def _table(self, block: Matrix) -> Table:
        if self.table is not None:
            return self.table(block)
        names = getattr(self.estimator, "feature_names_in_", None)
        return block if names is None else pd.DataFrame(block, columns=names)


def _invalid_answers(expected: str, n_rows: int, answers: Predictions) -> EngineError:
    shown = answers.ravel()[:3].tolist()
    return EngineError(
        f"invalid answers of predict: got {answers.size} answers, the first {shown}; expected "
        f"{expected} for each of {n_rows} rows"
    )
