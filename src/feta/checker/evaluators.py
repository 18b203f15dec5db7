"""Evaluators of the checker: which code evaluates which kind of stored scorer."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from feta.arrays import Matrix, Vector
from feta.checker.box import Box
from feta.checker.exact_ensemble import ENSEMBLE, StoredEnsemble
from feta.checker.exact_forest import TREE_ENSEMBLE, StoredForest
from feta.checker.exact_network import PIECEWISE_LINEAR, StoredNetwork
from feta.checker.exact_smooth import SMOOTH, StoredSmoothNetwork
from feta.checker.forest_bounds import ForestBounds
from feta.checker.network_bounds import BoxBounds, NetworkBounds
from feta.checker.sensitive_axis import SensitiveAxis
from feta.errors import CertificateError
from feta.model import Model
from feta.scorer.exact_scores import ExactScores
from feta.scorer.protocol import Objective, StoredScorer


class Bounds(Protocol):
    """A scorer on the counterparts of one person, which it bounds without rounding."""

    def over(self, box: Box, objective: Objective) -> BoxBounds | None:
        """Bound an objective over a box; None if the box must be split first."""
        ...


class Evaluator(Protocol):
    """A scorer as the checker evaluates it."""

    def scores(self, people: Matrix) -> ExactScores:
        """Compute the exact scores of one or more people, or intervals that contain them."""
        ...

    def bounds(self, axes: Sequence[SensitiveAxis], person: Vector) -> Bounds:
        """Return the bounds over boxes of a person's counterparts; raise if there are none."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class NetworkEvaluator:
    """A piecewise-linear network, evaluated from its stored numbers."""

    network: StoredNetwork

    @classmethod
    def of(cls, stored: StoredScorer) -> "NetworkEvaluator":
        """Convert the stored numbers."""
        return cls(StoredNetwork.of(stored))

    def scores(self, people: Matrix) -> ExactScores:
        """Compute the exact scores of one or more people."""
        return self.network.scores(people)

    def bounds(self, axes: Sequence[SensitiveAxis], person: Vector) -> NetworkBounds:
        """Return the bounds over boxes of a person's counterparts."""
        return NetworkBounds.of(self.network, axes, person)


@dataclass(frozen=True, slots=True, eq=False)
class ForestEvaluator:
    """A tree ensemble, evaluated from its stored numbers."""

    forest: StoredForest

    @classmethod
    def of(cls, stored: StoredScorer) -> "ForestEvaluator":
        """Convert the stored numbers."""
        return cls(StoredForest.of(stored))

    def scores(self, people: Matrix) -> ExactScores:
        """Compute the exact scores of one or more people."""
        return self.forest.scores(people)

    def bounds(self, axes: Sequence[SensitiveAxis], person: Vector) -> ForestBounds:
        """Return the bounds over boxes of a person's counterparts."""
        return ForestBounds(self.forest, tuple(axes), person)


@dataclass(frozen=True, slots=True, eq=False)
class EnsembleEvaluator:
    """A combination of scorers, evaluated from its stored numbers."""

    ensemble: StoredEnsemble

    @classmethod
    def of(cls, stored: StoredScorer) -> "EnsembleEvaluator":
        """Convert the stored numbers; its members must be of kinds that the checker knows."""
        return cls(StoredEnsemble.of(stored, _member_evaluator))

    def scores(self, people: Matrix) -> ExactScores:
        """Compute intervals that contain the scores of one or more people."""
        return self.ensemble.scores(people)

    def bounds(self, axes: Sequence[SensitiveAxis], person: Vector) -> Bounds:
        """Raise: an ensemble has no bounds over boxes."""
        del axes, person
        raise no_bounds(ENSEMBLE)


@dataclass(frozen=True, slots=True, eq=False)
class SmoothEvaluator:
    """A network with smooth activations, evaluated from its stored numbers."""

    network: StoredSmoothNetwork

    @classmethod
    def of(cls, stored: StoredScorer) -> "SmoothEvaluator":
        """Convert the stored numbers."""
        return cls(StoredSmoothNetwork.of(stored))

    def scores(self, people: Matrix) -> ExactScores:
        """Compute intervals that contain the scores of one or more people."""
        return self.network.scores(people)

    def bounds(self, axes: Sequence[SensitiveAxis], person: Vector) -> Bounds:
        """Raise: such a network has no bounds over boxes."""
        del axes, person
        raise no_bounds(SMOOTH)


@dataclass(frozen=True, slots=True, eq=False)
class ScorerEvaluator:
    """A scorer of a kind that the checker does not know, evaluated by its own exact arithmetic."""

    model: Model
    kind: str

    def scores(self, people: Matrix) -> ExactScores:
        """Return the scorer's own exact scores."""
        return self.model.exact_scores(people)

    def bounds(self, axes: Sequence[SensitiveAxis], person: Vector) -> Bounds:
        """Raise: its bounds would be those that are re-checked."""
        del axes, person
        raise no_bounds(self.kind)


def no_bounds(kind: str) -> CertificateError:
    """Return the error for bounds that the checker cannot compute."""
    bounded = (PIECEWISE_LINEAR, TREE_ENSEMBLE)
    return CertificateError(
        "the bounds of this certificate cannot be re-checked: got a scorer of the kind "
        f"{kind!r}; expected one of {', '.join(map(repr, bounded))}"
    )


EVALUATORS: dict[str, Callable[[StoredScorer], Evaluator]] = {
    PIECEWISE_LINEAR: NetworkEvaluator.of,
    TREE_ENSEMBLE: ForestEvaluator.of,
    ENSEMBLE: EnsembleEvaluator.of,
    SMOOTH: SmoothEvaluator.of,
}


def _member_evaluator(stored: StoredScorer) -> Evaluator:
    if stored.kind not in EVALUATORS:
        raise CertificateError(
            f"unknown member in what is re-checked: got a scorer of the kind {stored.kind!r}; "
            f"expected one of {', '.join(map(repr, EVALUATORS))}"
        )
    return EVALUATORS[stored.kind](stored)


@lru_cache(maxsize=8)  # a model is converted once, not once per person
def evaluator_of(model: Model) -> Evaluator:
    """Return the evaluator of a model's scorer."""
    stored = model.scorer.stored()
    make = EVALUATORS.get(stored.kind)
    return ScorerEvaluator(model, stored.kind) if make is None else make(stored)
