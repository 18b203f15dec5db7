"""One of several decisions: the class with the largest score."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from feta.arrays import Answers, Array, Matrix, Vector
from feta.errors import SchemaError
from feta.rounding import DIFFERENCE
from feta.rule.comparator import UNDECIDED, Decisions
from feta.rule.decision_rule import DecisionRule
from feta.rule.intervals import interval_ends
from feta.rule.labels import parse_class
from feta.rule.protocol import Outcome, TiesTo
from feta.rule.words import OTHER_CLASS_MARGIN, RuleWords
from feta.scorer.exact_scores import ExactScores
from feta.scorer.kernel import KernelRule
from feta.scorer.protocol import Enclosure, Objective, Side

if TYPE_CHECKING:
    from feta.rule.one_vs_rest import OneVsRest

# Decisions are int8.
MAX_CLASSES = 127

# Classes that an explanation lists.
LISTED_CLASSES = 12


@dataclass(frozen=True, slots=True)
class Argmax(DecisionRule):
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
    def output_counts(self) -> tuple[int, ...]:
        """The numbers of outputs of a scorer that fit."""
        return (len(self.classes),)

    @property
    def favors(self) -> Side:
        """The class with the score above all others wins."""
        return "above"

    @property
    def ties_to(self) -> TiesTo:
        """The class that wins a tied vote."""
        return "first"

    @property
    def two_sided(self) -> bool:
        """False: no class is the favorable one."""
        return False

    @property
    def kernel_rule(self) -> KernelRule:
        """The rule as the compiled kernel takes it."""
        return KernelRule("argmax", self.outputs, self.n_classes, ties_to_last=False)

    def one_vs_rest(self, chosen: str) -> "OneVsRest":
        """Return the rule that decides only between the chosen class and all others."""
        from feta.rule.one_vs_rest import OneVsRest  # noqa: PLC0415 - it imports this module

        return OneVsRest(self.classes, chosen)

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

    def decide_exactly(self, scores: ExactScores) -> Decisions:
        """Decide exact scores; intervals whose points differ in decision remain undecided."""
        if scores.radii is None:
            rows = scores.centers.numerators.tolist()
            return np.array([row.index(max(row)) for row in rows], dtype=np.int8)
        low, high = (ends.numerators.tolist() for ends in interval_ends(scores))
        winners = [_winning_class(*ends) for ends in zip(low, high, strict=True)]
        return np.array(winners, dtype=np.int8)

    def answers(self, decisions: Decisions) -> Answers:
        """Return the indices of the classes."""
        return decisions

    def opposing(self, decision: int) -> Objective:
        """Return the largest margin of another class over this one."""
        return Objective(class_margins(self.n_classes, decision))

    def reaching(self, decision: int) -> Objective:
        """Return the objective that exceeds its level where a point gets this decision.

        It is the smallest margin of the class over any other class.
        """
        return Objective(-class_margins(self.n_classes, decision), least=True)

    def gap(self, pair: ExactScores) -> float:
        """Return the margin of the counterpart's class over the person's, at the counterpart."""
        decision, other = self.decide_exactly(pair)
        margin = pair[1:].output(int(other)).minus(pair[1:].output(int(decision)))
        return float(margin.floats()[0, 0])

    def margins(self, decisions: tuple[int, ...], scores: Vector | Matrix) -> Vector:
        """Return the score of the counterpart's class minus that of the person's class."""
        reference, other = decisions
        return np.asarray(scores[:, other] - scores[:, reference])

    def answers_of_outputs(self, outputs: Matrix, *, probabilities: bool) -> Answers:
        """Decide as the source does: probabilities have the same order as scores."""
        del probabilities
        return np.argmax(outputs, axis=1)

    def answers_of_labels(self, labels: Array, classes: Array) -> Answers:
        """Return the indices of the labels that a classifier predicts."""
        return np.argmax(labels.reshape(-1, 1) == classes, axis=1)

    def read_label(self, label: object, names: tuple[str, ...]) -> Outcome:
        """Parse the name of a class."""
        del names
        return self.classes.index(parse_class(label, self.classes))

    def words(self, *, unit: str, log_odds: bool) -> RuleWords:
        """Return the words for results."""
        del unit, log_odds
        return RuleWords(
            counterexample="a counterpart with a different class",
            same_outcome="the same class",
            margin="margin of the other class",
            violation=OTHER_CLASS_MARGIN,
        )

    def explanation(self, names: tuple[str, ...], *, unit: str, log_odds: bool) -> str:
        """Explain how scores become decisions."""
        del names, unit, log_odds
        return (
            f"The decision is the class with the largest score, of {len(self.classes)}: "
            f"{', '.join(self.classes[:LISTED_CLASSES])}; on a tie, the first one."
        )


def _winning_class(low: list[int], high: list[int]) -> int:
    """Return the class that provably wins, where the first one wins ties; else UNDECIDED."""
    for index in range(len(low)):
        before = all(low[index] > other for other in high[:index])
        after = all(low[index] >= other for other in high[index + 1 :])
        if before and after:
            return index
    return UNDECIDED


def class_margins(n_classes: int, reference: int) -> Matrix:
    """Return the directions "score of another class − score of the reference", one per row."""
    rows = np.delete(np.eye(n_classes), reference, axis=0)
    rows[:, reference] = -1.0
    return rows
