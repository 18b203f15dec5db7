"""One of several decisions: the class with the largest score."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from feta.arrays import Matrix
from feta.dyadic import Dyadic
from feta.errors import SchemaError
from feta.rounding import DIFFERENCE, Arithmetic, sigmoid_error
from feta.rule.comparator import UNDECIDED, Comparator, DecisionComparator, Decisions
from feta.scorer.protocol import Enclosure, Objective, Side

# Decisions are int8.
MAX_CLASSES = 127


@dataclass(frozen=True, slots=True)
class Argmax:
    """The class with the largest score; the first such class on a tie."""

    classes: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", tuple(self.classes))
        if len(self.classes) < 2 or len(set(self.classes)) != len(self.classes):  # noqa: PLR2004
            raise SchemaError(
                f"invalid classes: got {self.classes!r}; expected two or more different classes"
            )
        if len(self.classes) > MAX_CLASSES:
            raise SchemaError(
                f"too many classes: got {len(self.classes)}; expected at most {MAX_CLASSES}"
            )

    @property
    def n_classes(self) -> int:
        """The number of different decisions."""
        return len(self.classes)

    @property
    def outputs(self) -> int:
        """The number of scores that the rule reads."""
        return len(self.classes)

    @property
    def outcomes(self) -> tuple[str, ...]:
        """The default names of the decisions."""
        return self.classes

    @property
    def ties_to(self) -> Literal["first", "last"]:
        """The class that wins a tied vote."""
        return "first"

    def resolved(self, side: Side | None) -> "Argmax":
        """Return the rule unchanged: the first class wins a tie."""
        del side
        return self

    def decide(self, scores: Enclosure) -> Decisions:
        """Decide where the error bound allows it; NaN and infinite errors remain undecided."""
        best = np.argmax(scores.values, axis=1)
        rows = np.arange(len(best))
        margins = scores.values[rows, best][:, None] - scores.values
        size = np.abs(scores.values) + np.abs(scores.values[rows, best])[:, None]
        radius = scores.errors + scores.errors[rows, best][:, None] + DIFFERENCE * size
        wins = margins > radius
        wins[rows, best] = True
        return np.where(wins.all(axis=1), best, UNDECIDED).astype(np.int8)

    def decide_exactly(self, scores: Dyadic) -> Decisions:
        """Decide exact scores; nothing remains undecided."""
        rows = scores.numerators.tolist()
        return np.array([row.index(max(row)) for row in rows], dtype=np.int8)

    def source_error(self, arithmetic: Arithmetic) -> float:
        """Bound the error that a softmax adds, in units of the score.

        It keeps the order, but rounds differences below a few units to a tie.
        """
        return sigmoid_error(0.0, arithmetic)

    def comparator(self, reference: Dyadic) -> Comparator:
        """Return a comparator with the decision for a person's scores."""
        return DecisionComparator(self, int(self.decide_exactly(reference)[0]))

    def objective(self, reference: Dyadic) -> Objective:
        """Return the largest margin of another class over the class that a person gets."""
        decision = int(self.decide_exactly(reference)[0])
        return Objective(class_margins(self.n_classes, decision))

    def reaching(self, decision: int) -> Objective:
        """Return the objective that exceeds its level where a point gets this decision.

        It is the smallest margin of the class over any other class.
        """
        return Objective(-class_margins(self.n_classes, decision), least=True)

    def gap(self, scores: Dyadic) -> float:
        """Return the margin of the counterpart's class over the person's, at the counterpart."""
        decision, other = self.decide_exactly(scores)
        person_score = scores[1, decision : decision + 1]
        return float((scores[1, other : other + 1] - person_score).floats()[0])


def class_margins(n_classes: int, reference: int) -> Matrix:
    """Return the directions "score of another class − score of the reference", one per row."""
    rows = np.delete(np.eye(n_classes), reference, axis=0)
    rows[:, reference] = -1.0
    return rows
