"""Ensembles: (bias + Σ weight · curve(member's scores)) / denominator.

A mean of probabilities, a vote, a stack or a calibrated classifier is one of these. The members
are scorers of any kind.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce

import numpy as np

from feta.arrays import Array, Matrix, Vector, frozen
from feta.errors import NetworkError
from feta.relation.protocol import Relation
from feta.rounding import SOURCES, Arithmetic
from feta.scorer.ensemble.curve import Curve
from feta.scorer.ensemble.evaluation import EnsembleRows, RestrictedEnsemble
from feta.scorer.protocol import (
    Link,
    Provenance,
    Restricted,
    Scorer,
    Side,
    StoredScorer,
    link_of_difference,
)
from feta.scorer.restricted_rows import RestrictedRows
from feta.space.attribute import Attribute
from feta.space.feature_space import FeatureSpace

ENSEMBLE = "ensemble"


@dataclass(frozen=True, slots=True, eq=False)
class Member:
    """A scorer, and the curves that its scores go through."""

    scorer: Scorer
    curves: tuple[Curve, ...] = ()

    def __post_init__(self) -> None:
        outputs = self.scorer.outputs
        for curve in self.curves:
            if curve.inputs != outputs:
                raise NetworkError(
                    f"a curve does not fit its member: got {outputs} scores; expected "
                    f"{curve.inputs} for a {curve.kind}"
                )
            outputs = curve.outputs

    @property
    def outputs(self) -> int:
        """The number of values that the last curve returns."""
        return self.curves[-1].outputs if self.curves else self.scorer.outputs

    @property
    def limits(self) -> tuple[Vector, Vector]:
        """Bounds on each value."""
        if not self.curves:
            return self.scorer.output_limits
        low, high = self.curves[-1].limits
        return np.full(self.outputs, low), np.full(self.outputs, high)


@dataclass(frozen=True, eq=False)
class Ensemble:
    """Members, and how their values are added."""

    members: tuple[Member, ...]
    weights: Matrix  # (outputs, values of all members)
    bias: Vector  # (outputs,)
    denominator: int = 1  # the mean of n values is their sum over n
    name: str = "Combination"  # the source's name of it
    equality: Side | None = None  # the side of ties in the source, if known
    link: Link = "identity"  # what the source's own prediction is, in terms of the score

    def __post_init__(self) -> None:
        object.__setattr__(self, "members", tuple(self.members))
        object.__setattr__(self, "weights", frozen(np.atleast_2d(self.weights)))
        object.__setattr__(self, "bias", frozen(self.bias))
        if not self.members:
            raise NetworkError("invalid ensemble: got no members; expected one or more")
        values = sum(member.outputs for member in self.members)
        fits = self.weights.shape == (len(self.bias), values)
        if not fits or not (np.isfinite(self.weights).all() and np.isfinite(self.bias).all()):
            raise NetworkError(
                f"invalid weights of an ensemble: got the shape {self.weights.shape}; expected "
                f"finite numbers of the shape {(len(self.bias), values)}"
            )
        if self.denominator < 1:
            raise NetworkError(
                f"invalid denominator of an ensemble: got {self.denominator}; expected 1 or more"
            )
        if self.provenance == "counted":
            raise NetworkError(
                "a member of an ensemble can only be counted: got a member whose predictions are "
                "evaluated by its own code; expected members that FETA reads; count the whole model"
            )

    @property
    def scorers(self) -> tuple[Scorer, ...]:
        """The members' scorers."""
        return tuple(member.scorer for member in self.members)

    @property
    def width(self) -> int:
        """The number of columns."""
        return self.scorers[0].width

    @property
    def outputs(self) -> int:
        """The number of scores."""
        return len(self.bias)

    @property
    def provenance(self) -> Provenance:
        """The weakest of the members'."""
        found = {scorer.provenance for scorer in self.scorers}
        weakest: Sequence[Provenance] = ("counted", "sampled", "proved")
        return next(name for name in weakest if name in found)

    @property
    def description(self) -> str:
        """The source's name, and the members."""
        first = self.scorers[0].description
        return f"{self.name}: {len(self.members)} members, the first of which is: {first}"

    @property
    def source(self) -> str:
        """The coarsest number format of the members."""
        return "float32" if any(s.source == "float32" for s in self.scorers) else "float64"

    @property
    def arithmetic(self) -> Arithmetic:
        """The arithmetic of the user's runtime, whose rounding may change decisions."""
        return SOURCES[self.source]

    @property
    def output_limits(self) -> tuple[Vector, Vector]:
        """Bounds on each score that hold for all people; infinite if none is known."""
        low = np.concatenate([member.limits[0] for member in self.members])
        high = np.concatenate([member.limits[1] for member in self.members])
        weights, size = self.weights, self.denominator
        if not (np.isfinite(low).all() and np.isfinite(high).all()):
            return np.full(self.outputs, -np.inf), np.full(self.outputs, np.inf)
        positive, negative = np.maximum(weights, 0), np.minimum(weights, 0)
        least = positive @ low + negative @ high + self.bias
        most = positive @ high + negative @ low + self.bias
        slack = 1e-9 * (np.abs(weights) @ np.maximum(np.abs(low), np.abs(high)) + abs(self.bias))
        return (least - slack) / size, (most + slack) / size

    @property
    def cost(self) -> int:
        """The largest cost of a member, and one number per value."""
        return max(scorer.cost for scorer in self.scorers) + self.weights.shape[1]

    @cached_property
    def fingerprint(self) -> str:
        """A sha256 of all numbers that affect decisions, and of the facts about the source."""
        facts: list[object] = [self.equality, self.link, self.denominator, self.weights.shape]
        for member in self.members:
            kinds = [curve.kind for curve in member.curves]
            facts += [member.scorer.fingerprint, kinds]
        digest = hashlib.sha256(json.dumps(facts).encode())
        for array in self.own_numbers().values():
            digest.update(np.ascontiguousarray(array, dtype=np.float64).tobytes())
        return digest.hexdigest()

    def own_numbers(self) -> dict[str, Array]:
        """Return the numbers of weights and curves, without those of the members."""
        numbers: dict[str, Array] = {
            "weights": self.weights,
            "bias": self.bias,
            "denominator": _name(str(self.denominator)),  # a float64 cannot hold every integer
        }
        for index, member in enumerate(self.members):
            for place, curve in enumerate(member.curves):
                prefix = f"member{index}.curve{place}."
                numbers |= {prefix + name: array for name, array in curve.numbers.items()}
        return numbers

    def stored(self) -> StoredScorer:
        """Return all numbers that define the score.

        `memberK.kind`, `memberK.curveJ.kind` and the digits of `denominator` are texts as bytes;
        `memberK.scorer.` precedes the arrays of a member.
        """
        arrays = self.own_numbers()
        for index, member in enumerate(self.members):
            stored = member.scorer.stored()
            arrays[f"member{index}.kind"] = _name(stored.kind)
            prefix = f"member{index}.scorer."
            arrays |= {prefix + name: array for name, array in stored.arrays.items()}
            for place, curve in enumerate(member.curves):
                arrays[f"member{index}.curve{place}.kind"] = _name(curve.kind)
        return StoredScorer(ENSEMBLE, arrays)

    def reads(self, attribute: Attribute, space: FeatureSpace) -> bool:
        """Return whether a score can depend on the columns of an attribute."""
        return any(scorer.reads(attribute, space) for scorer in self.scorers)

    def __call__(self, people: Matrix) -> Matrix:
        """Compute scores in float64, (people, outputs), for display only."""
        return self.points(people).scores(self.arithmetic).values

    def difference(self) -> "Ensemble":
        """Return the ensemble whose score is the second output minus the first."""
        return replace(
            self._with_outputs(np.array([[-1.0, 1.0]])), link=link_of_difference(self.link)
        )

    def output(self, index: int) -> "Ensemble":
        """Return the ensemble of one output; ties at a threshold on it have no known side."""
        return replace(self._with_outputs(np.eye(self.outputs)[index : index + 1]), equality=None)

    def _with_outputs(self, directions: Matrix) -> "Ensemble":
        weights, bias = directions @ self.weights, directions @ self.bias
        return replace(self, weights=weights, bias=bias)

    def with_link(self, link: Link) -> "Ensemble":
        """Return the same scores, of which the source's prediction is another function."""
        return replace(self, link=link)

    def unscaled(
        self, space: FeatureSpace, centers: Sequence[float], scales: Sequence[float]
    ) -> "Ensemble":
        """Return the ensemble of columns x of a space, whose members expect scaled ones."""
        return self._of([scorer.unscaled(space, centers, scales) for scorer in self.scorers])

    def over(self, space: FeatureSpace) -> "Ensemble":
        """Return the ensemble for the columns of a space; raise if a member does not fit."""
        return self._of([scorer.over(space) for scorer in self.scorers])

    def obstacle(self, column: int, low: float, high: float) -> str:
        """Return why a column must not leave the limits of the space; empty if it may."""
        reasons = (scorer.obstacle(column, low, high) for scorer in self.scorers)
        return next((reason for reason in reasons if reason), "")

    def widened(self, limits: Mapping[int, tuple[float, float]], magnitudes: Vector) -> "Ensemble":
        """Return the ensemble for wider limits of columns."""
        return self._of([scorer.widened(limits, magnitudes) for scorer in self.scorers])

    def _of(self, scorers: Sequence[Scorer]) -> "Ensemble":
        pairs = zip(self.members, scorers, strict=True)
        return replace(self, members=tuple(Member(s, member.curves) for member, s in pairs))

    def points(self, people: Matrix) -> EnsembleRows:
        """Return people as points, one per row."""
        return EnsembleRows(self, tuple(scorer.points(people) for scorer in self.scorers))

    def restrict(self, relation: Relation) -> Restricted:
        """Return the ensemble on people's counterparts."""
        whole = relation.enclosing
        if whole is not None and whole.finite:
            return RestrictedEnsemble.of(self, whole)
        return RestrictedRows(self, relation)


def mean_weights(weights: Sequence[float]) -> tuple[list[float], int]:
    """Return weights and a denominator, both exact: Σ weight · value / Σ weights."""
    fractions = [float(weight).as_integer_ratio() for weight in weights]
    scale = reduce(max, (denominator for _, denominator in fractions), 1)  # a power of two
    integers = [numerator * (scale // denominator) for numerator, denominator in fractions]
    return [float(number) for number in integers], sum(integers)


def _name(text: str) -> Array:
    return np.frombuffer(text.encode(), dtype=np.uint8)
