"""Rule: how scores become decisions, and when two counterparts are treated apart.

A decision is a small whole number, the class; OPEN where an error bound leaves it undecided. For a
threshold, 1 is favorable and 0 is not. A `Tolerance` decides nothing: it compares the scores of any
two counterparts. A band of its width around a center reduces that to one point at a time.
"""

from dataclasses import dataclass, field, replace
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Literal, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from feta.arrays import Flags, Matrix, Vector
from feta.dyadic import Dyadic
from feta.errors import CertificateError, SchemaError, one_of
from feta.rounding import DIFFERENCE, FLOAT64, Arithmetic, sigmoid_error
from feta.scorer.network.error_bounds import Bounded
from feta.scorer.network.network import Side

# What a person gets. Two decisions: True is favorable; several classes: the class's number;
# regression: the score.
Outcome = bool | int | float

Decisions = NDArray[np.int8]
UNDECIDED = -1

# What a tolerance compares, as files name it. The first release compared each counterpart's score with
# the person's own, which is another question.
DEFINITION = "span"

# A tolerance below this is so near the end of float64 that half of it may be rounded.
SMALLEST_EPSILON = 2.0**-900

# Decisions are int8.
MAX_CLASSES = 127

_SIDES = ("above", "below")
_EQUALITIES = ("favorable", "unfavorable")


class Comparator(Protocol):
    """Sorts points into classes: by the error bounds where they allow it, or exactly."""

    def decide(self, scores: Bounded) -> Decisions:
        """Sort where the error bound allows it; NaN and infinite errors stay open."""
        ...

    def decide_exactly(self, scores: Dyadic) -> Decisions:
        """Sort exact scores; nothing stays open."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Objective:
    """What grows as a counterpart gets worse: directions · scores + offsets, the largest of them.

    With `least` it is the smallest of them: every one has to grow. Above `level` a counterpart is
    treated apart, below it alike; on it, the rule's own tie decides.
    """

    directions: Matrix  # (directions, outputs), entries −1, 0 and 1
    offsets: Dyadic = field(default_factory=lambda: Dyadic.of(np.zeros(1)))
    least: bool = False
    level: float = 0.0

    def range(self, scores: Bounded) -> tuple[Vector, Vector, Vector]:
        """Bound each point's value: at least, at most, and about."""
        sizes = np.abs(self.directions).T
        offsets = self.offsets.floats()
        middles = scores.values @ self.directions.T + offsets
        size = np.abs(scores.values) @ sizes + np.abs(offsets)
        with np.errstate(invalid="ignore"):  # inf − inf and 0 · inf where nothing is known
            radius = scores.errors @ sizes * (1 + DIFFERENCE) + DIFFERENCE * size
            lows = np.nan_to_num(middles - radius, nan=-np.inf, posinf=np.inf, neginf=-np.inf)
            highs = np.nan_to_num(middles + radius, nan=np.inf, posinf=np.inf, neginf=-np.inf)
        if self.least:
            return lows.min(axis=1), highs.min(axis=1), middles.min(axis=1)
        return lows.max(axis=1), highs.max(axis=1), middles.max(axis=1)


@dataclass(frozen=True, slots=True)
class Threshold:
    """Favorable when the score is on one side of a value; `equality` says what a tie is.

    None takes the tie rule of the network's source, and is favorable where none is recorded.
    """

    value: float
    favors: Side = "above"
    equality: Literal["favorable", "unfavorable"] | None = None

    def __post_init__(self) -> None:
        if not _is_finite(self.value):
            raise SchemaError(f"a threshold must be a finite number, got {self.value!r}")
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
        return cls(_nearest_logit(float(probability)), favors)

    @property
    def n_classes(self) -> int:
        """The number of different decisions."""
        return 2

    @property
    def outputs(self) -> int:
        """The number of scores it reads."""
        return 1

    @property
    def outcomes(self) -> tuple[str, ...]:
        """What the decisions are called where the user gives no names."""
        return ("unfavorable", "favorable")

    @property
    def ties_to(self) -> Literal["first", "last"]:
        """Which class wins a vote that is split: the favorable one."""
        return "last"

    def resolved(self, side: Side | None) -> "Threshold":
        """Settle what a tie is, from where the network's source puts it."""
        if self.equality is not None:
            return self
        favorable = side is None or side == self.favors
        return replace(self, equality="favorable" if favorable else "unfavorable")

    def decide(self, scores: Bounded) -> Decisions:
        """Decide where the error bound allows it; NaN and infinite errors stay open."""
        distance = scores.values[:, 0] - self.value
        favorable = distance > 0 if self.favors == "above" else distance < 0
        return np.where(np.abs(distance) > scores.errors[:, 0], favorable, UNDECIDED).astype(
            np.int8
        )

    def decide_exactly(self, scores: Dyadic) -> Decisions:
        """Decide exact scores; nothing stays open."""
        side = scores[:, 0].compare(Dyadic.of(self.value))
        favorable = side > 0 if self.favors == "above" else side < 0
        if self.equality != "unfavorable":
            favorable = favorable | (side == 0)
        return favorable.astype(np.int8)

    def source_error(self, arithmetic: Arithmetic) -> float:
        """Bound the doubt that a sigmoid before the comparison adds, in score units."""
        return sigmoid_error(self.value, arithmetic)

    def comparator(self, reference: Dyadic) -> Comparator:
        """Give what tells counterparts treated apart from this person: another decision."""
        return _Differs(self, int(self.decide_exactly(reference)[0]))

    def objective(self, reference: Dyadic) -> Objective:
        """Give what grows with the distance to the other side.

        The paper's `|z − f(x)|` without the absolute value, since the other decision lies on one side
        only (Eq. 4).
        """
        return self.reaching(1 - int(self.decide_exactly(reference)[0]))

    def reaching(self, decision: int) -> Objective:
        """Give what grows as a point is decided so."""
        sign = 1.0 if (decision == 1) == (self.favors == "above") else -1.0
        return Objective(np.array([[sign]]), level=sign * self.value)

    def gap(self, scores: Dyadic) -> float:
        """Say how far apart the scores of a pair are."""
        return abs(float((scores[1] - scores[0]).floats()[0]))


@dataclass(frozen=True, slots=True)
class Argmax:
    """The class with the largest score; the first of them on a tie."""

    classes: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", tuple(self.classes))
        if len(self.classes) < 2 or len(set(self.classes)) != len(self.classes):  # noqa: PLR2004 - a choice
            raise SchemaError(f"there must be two or more different classes, got {self.classes!r}")
        if len(self.classes) > MAX_CLASSES:
            raise SchemaError(
                f"there must be at most {MAX_CLASSES} classes, got {len(self.classes)}"
            )

    @property
    def n_classes(self) -> int:
        """The number of different decisions."""
        return len(self.classes)

    @property
    def outputs(self) -> int:
        """The number of scores it reads."""
        return len(self.classes)

    @property
    def outcomes(self) -> tuple[str, ...]:
        """What the decisions are called where the user gives no names."""
        return self.classes

    @property
    def ties_to(self) -> Literal["first", "last"]:
        """Which class wins a vote that is split."""
        return "first"

    def resolved(self, side: Side | None) -> "Argmax":
        """Keep it: the first class wins a tie."""
        del side
        return self

    def decide(self, scores: Bounded) -> Decisions:
        """Decide where the error bound allows it; NaN and infinite errors stay open."""
        return _settled_argmax(scores)

    def decide_exactly(self, scores: Dyadic) -> Decisions:
        """Decide exact scores; nothing stays open."""
        rows = scores.numerators.tolist()
        return np.array([row.index(max(row)) for row in rows], dtype=np.int8)

    def source_error(self, arithmetic: Arithmetic) -> float:
        """Softmax keeps the order, but rounds differences below a few units to a tie."""
        return sigmoid_error(0.0, arithmetic)

    def comparator(self, reference: Dyadic) -> Comparator:
        """Give what tells counterparts treated apart from this person: another decision."""
        return _Differs(self, int(self.decide_exactly(reference)[0]))

    def objective(self, reference: Dyadic) -> Objective:
        """Give the margins of the other classes over this person's class."""
        mine = int(self.decide_exactly(reference)[0])
        return Objective(_margins(self.n_classes, mine))

    def reaching(self, decision: int) -> Objective:
        """Give what grows as a point is decided so: the margin over every other class."""
        return Objective(-_margins(self.n_classes, decision), least=True)

    def gap(self, scores: Dyadic) -> float:
        """Say by how much the counterpart's class beats this person's, at the counterpart."""
        mine, other = self.decide_exactly(scores)
        return float((scores[1, other : other + 1] - scores[1, mine : mine + 1]).floats()[0])


@dataclass(frozen=True, slots=True)
class OneVsRest:
    """Whether the class with the largest score is the chosen one: one view of an `Argmax`."""

    classes: tuple[str, ...]
    chosen: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", Argmax(self.classes).classes)
        if self.chosen not in self.classes:
            raise SchemaError(f"the chosen class must be {one_of(self.chosen, self.classes)}")

    @property
    def index(self) -> int:
        """Which of the classes is the chosen one."""
        return self.classes.index(self.chosen)

    @property
    def n_classes(self) -> int:
        """The number of different decisions."""
        return 2

    @property
    def outputs(self) -> int:
        """The number of scores it reads."""
        return len(self.classes)

    @property
    def outcomes(self) -> tuple[str, ...]:
        """What the decisions are called where the user gives no names."""
        return (f"not {self.chosen}", self.chosen)

    @property
    def ties_to(self) -> Literal["first", "last"]:
        """Which side wins a vote that is split."""
        return "last"

    def resolved(self, side: Side | None) -> "OneVsRest":
        """Keep it: the first class wins a tie."""
        del side
        return self

    def decide(self, scores: Bounded) -> Decisions:
        """Decide where the error bound allows it; NaN and infinite errors stay open."""
        margins = scores.values @ _margins(self.outputs, self.index).T
        radius = _reach(scores, _margins(self.outputs, self.index))
        lost = (margins > radius).any(axis=1)
        won = (margins < -radius).all(axis=1)
        return np.where(won, 1, np.where(lost, 0, UNDECIDED)).astype(np.int8)

    def decide_exactly(self, scores: Dyadic) -> Decisions:
        """Decide exact scores; nothing stays open."""
        return (Argmax(self.classes).decide_exactly(scores) == self.index).astype(np.int8)

    def source_error(self, arithmetic: Arithmetic) -> float:
        """Softmax keeps the order, but rounds differences below a few units to a tie."""
        return sigmoid_error(0.0, arithmetic)

    def comparator(self, reference: Dyadic) -> Comparator:
        """Give what tells counterparts treated apart from this person: another decision."""
        return _Differs(self, int(self.decide_exactly(reference)[0]))

    def objective(self, reference: Dyadic) -> Objective:
        """Give the margin over the chosen class, or of the chosen class over all others."""
        return self.reaching(1 - int(self.decide_exactly(reference)[0]))

    def reaching(self, decision: int) -> Objective:
        """Give what grows as a point is decided so."""
        margins = _margins(self.outputs, self.index)
        return Objective(-margins, least=True) if decision == 1 else Objective(margins)

    def gap(self, scores: Dyadic) -> float:
        """Say by how much the counterpart is on the other side."""
        objective = self.objective(scores[:1])
        margins = (scores[1:] @ Dyadic.of(objective.directions).mT).floats()[0]
        return float(margins.min() if objective.least else margins.max())


@dataclass(frozen=True, slots=True)
class Tolerance:
    """Regression: fair at a person when no two counterparts' scores are farther apart than epsilon.

    The span of the scores, highest less lowest, decides; so all counterparts get the same verdict.
    """

    epsilon: float

    def __post_init__(self) -> None:
        if not _is_finite(self.epsilon) or self.epsilon < 0:
            raise SchemaError(
                f"a tolerance must be a finite number, 0 or more, got {self.epsilon!r}"
            )
        object.__setattr__(self, "epsilon", float(self.epsilon) + 0.0)

    @property
    def n_classes(self) -> int:
        """It decides nothing."""
        return 0

    @property
    def outputs(self) -> int:
        """The number of scores it reads."""
        return 1

    @property
    def outcomes(self) -> tuple[str, ...]:
        """It decides nothing."""
        return ()

    def resolved(self, side: Side | None) -> "Tolerance":
        """Keep it: a score epsilon away is within the tolerance, wherever the source puts ties."""
        del side
        return self

    def source_error(self, arithmetic: Arithmetic) -> float:
        """Nothing is squashed before the comparison."""
        del arithmetic
        return 0.0

    def comparator(self, known: Dyadic) -> "Band":
        """Return the band around known scores of counterparts; outside it, the span widens."""
        return Band.around(self.epsilon, known)

    def objective(self, known: Dyadic) -> Objective:
        """Return the distance to the center of the band around known scores."""
        return self.comparator(known).objective()

    def gap(self, scores: Dyadic) -> float:
        """Say how far apart the scores of a pair are."""
        return abs(float((scores[1] - scores[0]).floats()[0]))


Deciding = Threshold | Argmax | OneVsRest
Rule = Deciding | Tolerance


@dataclass(frozen=True, slots=True, eq=False)
class _Differs:
    """1 where the decision is another than this one."""

    rule: Deciding
    decision: int

    def decide(self, scores: Bounded) -> Decisions:
        found = self.rule.decide(scores)
        return np.where(found == UNDECIDED, UNDECIDED, found != self.decision).astype(np.int8)

    def decide_exactly(self, scores: Dyadic) -> Decisions:
        return (self.rule.decide_exactly(scores) != self.decision).astype(np.int8)


@dataclass(frozen=True, slots=True, eq=False)
class Band:
    """Judge of scores: 0 within epsilon / 2 of a center, 1 farther away.

    If all counterparts' scores lie in one band, no two are farther apart than epsilon, and that holds
    for a source's rounded scores as well. A score outside a band around the middle of known scores
    whose span is at most epsilon is lower or higher than all of them.
    """

    epsilon: float
    doubled: Dyadic  # twice the center, (1,): it needs no halving

    @classmethod
    def around(cls, epsilon: float, known: Dyadic) -> Self:
        """Put the center in the middle of the lowest and the highest of known scores."""
        scores = known.numerators[:, 0].tolist()
        return cls(epsilon, Dyadic(np.array([min(scores) + max(scores)], object), known.exponent))

    @classmethod
    def at(cls, epsilon: float, center: Fraction) -> Self:
        """Put the center at an exact number; it must be an integer times a power of two."""
        exponent = 1 - center.denominator.bit_length()
        if center.denominator != 1 << -exponent:
            raise CertificateError(
                f"invalid center of a band: got {center}; expected an integer times a power of two"
            )
        return cls(epsilon, Dyadic(np.array([2 * center.numerator], object), exponent))

    @property
    def center(self) -> Fraction:
        """The middle, exactly."""
        return self.doubled.fractions()[0] / 2

    @property
    def half(self) -> float:
        """At most epsilon / 2; 0 where float64 cannot halve, so that nothing is within for sure."""
        return self.epsilon / 2 if self.epsilon > SMALLEST_EPSILON else 0.0

    def decide(self, scores: Bounded) -> Decisions:
        """Sort where the error bound allows it; NaN and infinite errors stay open."""
        center, values = float(self.doubled.floats()[0]), 2 * scores.values[:, 0]
        distance = np.abs(values - center)
        # The center is rounded once, and so is the difference.
        size = np.abs(values) + abs(center) + self.epsilon
        radius = 2 * scores.errors[:, 0] + DIFFERENCE * size + FLOAT64.tiny
        open_ = ~(np.abs(distance - self.epsilon) > radius)
        return np.where(open_, UNDECIDED, distance > self.epsilon).astype(np.int8)

    def decide_exactly(self, scores: Dyadic) -> Decisions:
        """Sort exact scores; a score exactly epsilon / 2 away is within."""
        difference = scores[:, 0] + scores[:, 0] - self.doubled
        size = Dyadic(np.abs(difference.numerators), difference.exponent)
        return (size.compare(Dyadic.of(self.epsilon)) > 0).astype(np.int8)

    def objective(self) -> Objective:
        """Return the distance to the center, above and below."""
        center = self.doubled.numerators
        offsets = Dyadic(np.concatenate([-center, center]), self.doubled.exponent - 1)
        return Objective(np.array([[1.0], [-1.0]]), offsets, level=self.half)


def separates(rule: Rule, pair: Dyadic) -> bool:
    """Compare the exact scores of two people: other decisions, or more than epsilon apart."""
    if not isinstance(rule, Tolerance):
        first, second = rule.decide_exactly(pair)
        return bool(first != second)
    difference = pair[1, :1] - pair[0, :1]
    size = Dyadic(np.abs(difference.numerators), difference.exponent)
    return bool(size.compare(Dyadic.of(rule.epsilon))[0] > 0)


def differs_in_runtime(rule: Rule, reference: Dyadic, scores: Bounded) -> Flags:
    """Return which points the source's own runtime treats apart from the first one, provably."""
    if not isinstance(rule, Tolerance):
        return (rule.comparator(reference).decide(scores) == 1) & (
            rule.decide(scores)[0] != UNDECIDED
        )
    values, errors = scores.values[:, 0], scores.errors[:, 0]  # both of a pair are rounded there
    size = np.abs(values) + abs(values[0]) + rule.epsilon
    with np.errstate(invalid="ignore"):  # inf − inf where nothing is known: NaN, which is not sure
        distance = np.abs(values - values[0]) - rule.epsilon
    return np.asarray(distance > errors + errors[0] + DIFFERENCE * size + FLOAT64.tiny)


def _margins(n_classes: int, mine: int) -> Matrix:
    """Give the directions "another class less mine", one a row."""
    rows = np.delete(np.eye(n_classes), mine, axis=0)
    rows[:, mine] = -1.0
    return rows


def _reach(scores: Bounded, directions: Matrix) -> Matrix:
    """Bound the error of combinations of scores, their own rounding included."""
    sizes = np.abs(directions).T
    with np.errstate(invalid="ignore"):  # 0 · inf where nothing is known: NaN, which stays open
        return scores.errors @ sizes + DIFFERENCE * (np.abs(scores.values) @ sizes)


def _settled_argmax(scores: Bounded) -> Decisions:
    best = np.argmax(scores.values, axis=1)
    rows = np.arange(len(best))
    lead = scores.values[rows, best][:, None] - scores.values
    size = np.abs(scores.values) + np.abs(scores.values[rows, best])[:, None]
    radius = scores.errors + scores.errors[rows, best][:, None] + DIFFERENCE * size
    clear = lead > radius
    clear[rows, best] = True
    return np.where(clear.all(axis=1), best, UNDECIDED).astype(np.int8)


def _is_finite(value: object) -> bool:
    """Say whether something is a number that float64 can hold."""
    if not isinstance(value, int | float | np.number):
        return False
    try:
        return bool(np.isfinite(float(value)))
    except OverflowError:
        return False


def _nearest_logit(probability: float) -> float:
    """Round ln(p / (1 − p)) once; float64's own log is off by a few units in the last place."""
    with localcontext() as context:
        context.prec = 60
        p = Decimal(probability)
        return float((p / (1 - p)).ln())
