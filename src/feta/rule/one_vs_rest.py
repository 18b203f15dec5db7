"""One class against all others."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from feta.arrays import Matrix
from feta.dyadic import Dyadic
from feta.errors import SchemaError, unknown_choice
from feta.rounding import DIFFERENCE, Arithmetic, sigmoid_error
from feta.rule.argmax import Argmax, class_margins
from feta.rule.comparator import UNDECIDED, Comparator, DecisionComparator, Decisions
from feta.scorer.protocol import Enclosure, Objective, Side


@dataclass(frozen=True, slots=True)
class OneVsRest:
    """Whether the class with the largest score is the chosen one; a view of an `Argmax`."""

    classes: tuple[str, ...]
    chosen: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", Argmax(self.classes).classes)
        if self.chosen not in self.classes:
            raise SchemaError(f"unknown class: {unknown_choice(self.chosen, self.classes)}")

    @property
    def index(self) -> int:
        """The index of the chosen class."""
        return self.classes.index(self.chosen)

    @property
    def n_classes(self) -> int:
        """The number of different decisions."""
        return 2

    @property
    def outputs(self) -> int:
        """The number of scores that the rule reads."""
        return len(self.classes)

    @property
    def outcomes(self) -> tuple[str, ...]:
        """The default names of the decisions."""
        return (f"not {self.chosen}", self.chosen)

    @property
    def ties_to(self) -> Literal["first", "last"]:
        """The side that wins a tied vote."""
        return "last"

    def resolved(self, side: Side | None) -> "OneVsRest":
        """Return the rule unchanged: the first class wins a tie."""
        del side
        return self

    def decide(self, scores: Enclosure) -> Decisions:
        """Decide where the error bound allows it; NaN and infinite errors remain undecided."""
        directions = class_margins(self.outputs, self.index)
        margins = scores.values @ directions.T
        radius = _margin_error(scores, directions)
        lost = (margins > radius).any(axis=1)
        won = (margins < -radius).all(axis=1)
        return np.where(won, 1, np.where(lost, 0, UNDECIDED)).astype(np.int8)

    def decide_exactly(self, scores: Dyadic) -> Decisions:
        """Decide exact scores; nothing remains undecided."""
        return (Argmax(self.classes).decide_exactly(scores) == self.index).astype(np.int8)

    def source_error(self, arithmetic: Arithmetic) -> float:
        """Bound the error that a softmax adds, in units of the score.

        It keeps the order, but rounds differences below a few units to a tie.
        """
        return sigmoid_error(0.0, arithmetic)

    def comparator(self, reference: Dyadic) -> Comparator:
        """Return a comparator with the decision for a person's scores."""
        return DecisionComparator(self, int(self.decide_exactly(reference)[0]))

    def objective(self, reference: Dyadic) -> Objective:
        """Return the margin over the chosen class, or of the chosen class over all others."""
        return self.reaching(1 - int(self.decide_exactly(reference)[0]))

    def reaching(self, decision: int) -> Objective:
        """Return the objective that exceeds its level where a point gets this decision."""
        margins = class_margins(self.outputs, self.index)
        return Objective(-margins, least=True) if decision == 1 else Objective(margins)

    def gap(self, scores: Dyadic) -> float:
        """Return the margin by which the counterpart is on the other side."""
        objective = self.objective(scores[:1])
        margins = (scores[1:] @ Dyadic.of(objective.directions).mT).floats()[0]
        return float(margins.min() if objective.least else margins.max())


def _margin_error(scores: Enclosure, directions: Matrix) -> Matrix:
    """Bound the error of combinations of scores, including the rounding of the combination."""
    sizes = np.abs(directions).T
    with np.errstate(invalid="ignore"):  # 0 · inf where nothing is known: NaN, which is undecided
        return scores.errors @ sizes + DIFFERENCE * (np.abs(scores.values) @ sizes)
