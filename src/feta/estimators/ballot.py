"""Ballot: all counterparts of a person put to an estimator's own `predict`."""

from collections.abc import Iterator
from dataclasses import dataclass
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
    """Votes taken by an estimator's own `predict`.

    A person's counterparts are always put to it in the same blocks, alone: so nothing but the
    person's non-sensitive part can sway the votes, whatever `predict` does with a batch.
    """

    space: FeatureSpace
    estimator: Any
    table: RawTable | None  # None: it takes rows of numbers
    weights: VoteWeights | None = None

    def count(self, person: Vector, classes: Predictions) -> Counts:
        """Count the votes for each class."""
        total = np.zeros(len(classes), dtype=np.int64)
        for answers, votes in self._answers(person):
            matches = [answers == one for one in classes]
            if sum(int(np.sum(one)) for one in matches) != len(answers):
                shown = " or ".join(repr(one) for one in classes[:8])
                raise _refused(shown, len(votes), answers)
            total += np.array([votes[one].sum() for one in matches], dtype=np.int64)
        return total

    def median(self, person: Vector) -> float:
        """Take the lower median of the answers, each as often as it has votes."""
        found = list(self._answers(person))
        votes = np.concatenate([votes for _, votes in found])
        try:
            scores = np.concatenate([np.asarray(one, dtype=np.float64) for one, _ in found])
        except (TypeError, ValueError):
            scores = np.array([np.nan])
        if not np.isfinite(scores).all():
            raise _refused("a finite number", len(votes), found[0][0])
        order = np.argsort(scores, kind="stable")
        so_far = np.cumsum(votes[order])
        return float(scores[order][np.searchsorted(2 * so_far, so_far[-1])])

    def _answers(self, person: Vector) -> Iterator[tuple[Predictions, Counts]]:
        for block, votes in self._blocks(person):
            answers = np.asarray(self.estimator.predict(self._table(block)))
            if answers.shape != (len(block),):
                raise _refused("once", len(block), answers)
            yield answers, votes

    def _blocks(self, person: Vector) -> Iterator[tuple[Matrix, Counts]]:
        lattice, weights = self.space.lattice, self.weights
        if weights is None:
            for block in lattice.counterparts(person):
                yield block, np.ones(len(block), dtype=np.int64)
            return
        for start in range(0, len(weights.assignment_ids), BLOCK):
            numbers = weights.assignment_ids[start : start + BLOCK]
            block = lattice.moved(np.repeat(person[None, :], len(numbers), axis=0), numbers)
            yield block, weights.votes[start : start + BLOCK]

    def _table(self, block: Matrix) -> Table:
        if self.table is not None:
            return self.table(block)
        names = getattr(self.estimator, "feature_names_in_", None)
        return block if names is None else pd.DataFrame(block, columns=names)


def _refused(wanted: str, n_rows: int, answers: Predictions) -> EngineError:
    shown = answers.ravel()[:3].tolist()
    message = f"predict must answer {wanted} for each of {n_rows} rows, got {answers.size} answers, the first {shown}"
    return EngineError(message)
