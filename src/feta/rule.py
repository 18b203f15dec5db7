"""Rule: how scores become decisions.

A decision is a small whole number, the class; −1 where an error bound leaves it open. For a
threshold, 1 is favorable and 0 is not.
"""

from dataclasses import dataclass, replace
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from feta.arrays import Matrix
from feta.errors import SchemaError, one_of
from feta.network.bounded import Bounded
from feta.network.dyadic import Dyadic
from feta.network.network import Side
from feta.rounding import Arithmetic, sigmoid_slack

Decisions = NDArray[np.int8]
OPEN = -1

_SIDES = ("above", "below")
_EQUALITIES = ("favorable", "unfavorable")


@dataclass(frozen=True, slots=True)
class Threshold:
    """Favorable when the score is on one side of a value; `equality` says what a tie is.

    None takes the tie rule of the network's source, and is favorable where none is recorded.
    """

    value: float
    favors: Side = "above"
    equality: Literal["favorable", "unfavorable"] | None = None

    def __post_init__(self) -> None:
        if not np.isfinite(self.value):
            raise SchemaError(f"a threshold must be finite, got {self.value!r}")
        object.__setattr__(self, "value", float(self.value) + 0.0)
        if self.favors not in _SIDES:
            raise SchemaError(f"favors must be {one_of(self.favors, _SIDES)}")
        if self.equality is not None and self.equality not in _EQUALITIES:
            raise SchemaError(f"equality must be {one_of(self.equality, _EQUALITIES)}, or left out")

    @classmethod
    def at_probability(cls, probability: float, favors: Side = "above") -> Self:
        """Put the threshold at the float64 nearest to logit(p)."""
        if not 0 < probability < 1:
            message = f"a probability threshold must lie between 0 and 1, got {probability!r}; give a score instead"
            raise SchemaError(message)
        return cls(_nearest_logit(probability), favors)

    @property
    def n_classes(self) -> int:
        """The number of different decisions."""
        return 2

    @property
    def outputs(self) -> int:
        """The number of scores it reads."""
        return 1

    def resolved(self, side: Side | None) -> "Threshold":
        """Settle what a tie is, from where the network's source puts it."""
        if self.equality is not None:
            return self
        favorable = side is None or side == self.favors
        return replace(self, equality="favorable" if favorable else "unfavorable")

    def settle(self, scores: Bounded) -> Decisions:
        """Decide where the error bound allows it; NaN and infinite errors stay open."""
        distance = scores.values[:, 0] - self.value
        favorable = distance > 0 if self.favors == "above" else distance < 0
        return np.where(np.abs(distance) > scores.errors[:, 0], favorable, OPEN).astype(np.int8)

    def settle_exactly(self, scores: Dyadic) -> Decisions:
        """Decide exact scores; nothing stays open."""
        side = scores[:, 0].compare(Dyadic.of(self.value))
        favorable = side > 0 if self.favors == "above" else side < 0
        if self.equality != "unfavorable":
            favorable = favorable | (side == 0)
        return favorable.astype(np.int8)

    def slack(self, arithmetic: Arithmetic) -> float:
        """Bound the doubt that a sigmoid before the comparison adds, in score units."""
        return sigmoid_slack(self.value, arithmetic)

    def directions(self, decision: int) -> Matrix:
        """Give the combination of scores that grows as a counterpart gets worse for this decision.

        The farthest on the other side: the paper's |z − f(x)| without the absolute value, since the
        other decision lies on one side only (Eq. 4).
        """
        rises = (decision == 1) != (self.favors == "above")
        return np.array([[1.0 if rises else -1.0]])

    @property
    def outcomes(self) -> tuple[str, ...]:
        """What the decisions are called where the user gives no names."""
        return ("unfavorable", "favorable")


Rule = Threshold


def _nearest_logit(probability: float) -> float:
    """Round ln(p / (1 − p)) once; float64's own log is off by a few units in the last place."""
    from decimal import Decimal, localcontext  # noqa: PLC0415 - used here only

    with localcontext() as context:
        context.prec = 60
        p = Decimal(probability)
        return float((p / (1 - p)).ln())
