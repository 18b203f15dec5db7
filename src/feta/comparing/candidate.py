"""Candidates: ways to decide people, with what a comparison needs to measure them."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from feta.api import tally
from feta.arrays import Flags, Matrix, Vector
from feta.metrics.favorable_score import favorable_score
from feta.metrics.reinference import Score
from feta.model import Model
from feta.predict.fair_predictor import FairPredictor
from feta.verdict.tally import Tally


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A way to decide people.

    `aware` is a score of the same kind that reads the sensitive columns: re-inference is measured
    against it, since a difference between kinds of models would count as re-inference. Without such
    a score, re-inference is not measured. The slope is about the mean with the weights of the
    people, so a mean with other weights has none.
    """

    name: str
    about: str
    decide: Callable[[Matrix], Flags]
    score: Score
    unfair: Callable[[Matrix], Flags]  # whether a person has a counterexample
    aware: Score | None
    has_slope: bool = True


class CountedModel:
    """A model whose counterparts are counted once for the measured people."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._known: tuple[bytes, Tally] | None = None

    def counts(self, people: Matrix) -> Tally:
        """Return the counterparts of each person by decision."""
        key = people.tobytes()
        if self._known is None or self._known[0] != key:
            self._known = key, tally(self.model, people)
        return self._known[1]

    def unfair(self, people: Matrix) -> Flags:
        """Return who has a counterexample: the counterparts are not unanimous."""
        return np.asarray(~self.counts(people).unanimous)

    def favorable_share(self, people: Matrix) -> Vector:
        """Return the share of each person's counterparts that get the favorable decision."""
        counts = self.counts(people).by_class
        return np.asarray(counts[:, 1] / counts.sum(axis=1))

    def decide(self, people: Matrix) -> Flags:
        """Return the model's own decisions."""
        return np.asarray(self.model.decide(people), dtype=bool)

    def score(self, people: Matrix) -> Vector:
        """Return the model's own scores."""
        return favorable_score(self.model, people)

    @cached_property
    def side(self) -> int:
        """1 if high scores are favorable, −1 if low ones are."""
        return -1 if self.model.rule.favors == "below" else 1

    def decision_score(self, people: Matrix) -> Vector:
        """Return 1 for favorable and 0 otherwise, by rounded scores, for statistics."""
        threshold = self.model.rule.threshold
        assert threshold is not None  # the comparison refuses other rules
        scores = np.asarray(self.model.scorer(people))[:, 0]
        return np.asarray(self.side * scores >= self.side * threshold, dtype=np.float64)


def of_model(name: str, about: str, model: CountedModel, aware: Score | None) -> Candidate:
    """Return a model as a candidate."""
    return Candidate(name, about, model.decide, model.score, model.unfair, aware)


def of_majority(name: str, model: CountedModel) -> Candidate:
    """Return the vote of the paper: every counterpart has one vote."""
    predictor = FairPredictor(model.model)
    return Candidate(
        name,
        "the decision that most counterparts get, with one vote each, as in the paper",
        lambda people: np.asarray(predictor.decide(people), dtype=bool),
        model.favorable_share,
        _nobody,
        model.decision_score,
        has_slope=False,
    )


def of_votes(name: str, predictor: FairPredictor, model: CountedModel) -> Candidate:
    """Return fitted votes as a candidate."""
    means = predictor.vote != "majority"
    about = predictor.vote.replace("_", " ") + " of the counterparts, weights as they occur"
    return Candidate(
        name,
        about + (", kept level" if means else ""),
        lambda people: np.asarray(predictor.decide(people), dtype=bool),
        (lambda people: model.side * predictor.means(people).means)
        if means
        else (lambda people: np.asarray(predictor.decide(people), dtype=np.float64)),
        _nobody,
        model.score if means else model.decision_score,
    )


def _nobody(people: Matrix) -> Flags:
    """Return False for everybody: such decisions never read the sensitive columns."""
    return np.zeros(len(people), dtype=bool)


def of_function(
    name: str, about: str, favorable: Score, *, level: float, aware: Score
) -> Candidate:
    """Return decisions by a score that never reads the sensitive columns."""
    return Candidate(
        name, about, lambda people: favorable(people) >= level, favorable, _nobody, aware
    )
