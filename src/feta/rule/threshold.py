"""Two decisions by a threshold on one score."""

from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from typing import Literal, Self

import numpy as np

from feta.dyadic import Dyadic
from feta.errors import SchemaError, unknown_choice
from feta.rounding import Arithmetic, sigmoid_error
from feta.rule.comparator import (
    UNDECIDED,
    Comparator,
    DecisionComparator,
    Decisions,
    is_finite_number,
)
from feta.scorer.protocol import Enclosure, Objective, Side

_SIDES = ("above", "below")
_EQUALITIES = ("favorable", "unfavorable")


@dataclass(frozen=True, slots=True)
class Threshold:
    """Favorable if the score is on one side of a value; `equality` decides ties.

    With `equality=None`, ties are decided as by the source of the network. If that is not known,
    they are favorable.
    """

    value: float
    favors: Side = "above"
    equality: Literal["favorable", "unfavorable"] | None = None

    def __post_init__(self) -> None:
        if not is_finite_number(self.value):
            raise SchemaError(f"invalid threshold: got {self.value!r}; expected a finite number")
        object.__setattr__(self, "value", float(self.value) + 0.0)
        if self.favors not in _SIDES:
            raise SchemaError(f"invalid favors: {unknown_choice(self.favors, _SIDES)}")
        if self.equality is not None and self.equality not in _EQUALITIES:
            choices = (*_EQUALITIES, None)
            raise SchemaError(f"invalid equality: {unknown_choice(self.equality, choices)}")

    @classmethod
    def at_probability(cls, probability: float, favors: Side = "above") -> Self:
        """Return a threshold at the float64 nearest to logit(p)."""
        if not 0 < probability < 1:
            raise SchemaError(
                f"invalid probability threshold: got {probability!r}; expected a number between "
                "0 and 1; specify a score instead"
            )
        return cls(_nearest_logit(float(probability)), favors)

    @property
    def n_classes(self) -> int:
        """The number of different decisions."""
        return 2

    @property
    def outputs(self) -> int:
        """The number of scores that the rule reads."""
        return 1

    @property
    def outcomes(self) -> tuple[str, ...]:
        """The default names of the decisions."""
        return ("unfavorable", "favorable")

    @property
    def ties_to(self) -> Literal["first", "last"]:
        """The class that wins a tied vote: the favorable one."""
        return "last"

    def resolved(self, side: Side | None) -> "Threshold":
        """Return the rule with `equality` set; `side` is the side that wins ties in the source."""
        if self.equality is not None:
            return self
        favorable = side is None or side == self.favors
        return replace(self, equality="favorable" if favorable else "unfavorable")

    def decide(self, scores: Enclosure) -> Decisions:
        """Decide where the error bound allows it; NaN and infinite errors remain undecided."""
        distance = scores.values[:, 0] - self.value
        favorable = distance > 0 if self.favors == "above" else distance < 0
        return np.where(np.abs(distance) > scores.errors[:, 0], favorable, UNDECIDED).astype(
            np.int8
        )

    def decide_exactly(self, scores: Dyadic) -> Decisions:
        """Decide exact scores; nothing remains undecided."""
        side = scores[:, 0].compare(Dyadic.of(self.value))
        favorable = side > 0 if self.favors == "above" else side < 0
        if self.equality != "unfavorable":
            favorable = favorable | (side == 0)
        return favorable.astype(np.int8)

    def source_error(self, arithmetic: Arithmetic) -> float:
        """Bound the error that a sigmoid before the comparison adds, in units of the score."""
        return sigmoid_error(self.value, arithmetic)

    def comparator(self, reference: Dyadic) -> Comparator:
        """Return a comparator with the decision for a person's scores."""
        return DecisionComparator(self, int(self.decide_exactly(reference)[0]))

    def objective(self, reference: Dyadic) -> Objective:
        """Return the signed distance toward the decision that a person does not get.

        This is `|z − f(x)|` of Eq. 4 without the absolute value, because the other decision is on
        one side only.
        """
        return self.reaching(1 - int(self.decide_exactly(reference)[0]))

    def reaching(self, decision: int) -> Objective:
        """Return the objective that exceeds its level where a point gets this decision."""
        sign = 1.0 if (decision == 1) == (self.favors == "above") else -1.0
        return Objective(np.array([[sign]]), level=sign * self.value)

    def gap(self, scores: Dyadic) -> float:
        """Return the distance between the scores of a pair."""
        return abs(float((scores[1] - scores[0]).floats()[0]))


def _nearest_logit(probability: float) -> float:
    """Return ln(p / (1 − p)), rounded once.

    The logarithm of float64 has an error of a few units in the last place.
    """
    with localcontext() as context:
        context.prec = 60
        p = Decimal(probability)
        return float((p / (1 - p)).ln())
