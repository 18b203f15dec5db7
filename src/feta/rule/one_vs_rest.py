"""One class against all others."""

from dataclasses import dataclass

import numpy as np

from feta.arrays import Answers, Array, Matrix, Vector
from feta.dyadic import Dyadic
from feta.errors import SchemaError, unknown_choice
from feta.rounding import DIFFERENCE
from feta.rule.argmax import Argmax, class_margins
from feta.rule.comparator import Decisions
from feta.rule.decision_rule import DecisionRule
from feta.rule.intervals import decisions_of, interval_ends
from feta.rule.labels import parse_class, parse_side
from feta.rule.protocol import Outcome
from feta.rule.words import OTHER_CLASS_MARGIN, RuleWords
from feta.scorer.exact_scores import ExactScores
from feta.scorer.kernel import KernelRule
from feta.scorer.protocol import Enclosure, Objective, Side


@dataclass(frozen=True, slots=True)
class OneVsRest(DecisionRule):
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
    def output_counts(self) -> tuple[int, ...]:
        """The numbers of outputs of a scorer that fit."""
        return (len(self.classes),)

    @property
    def favors(self) -> Side:
        """The class with the score above all others wins."""
        return "above"

    @property
    def merges_classes(self) -> bool:
        """True: all other classes count as one decision."""
        return True

    @property
    def kernel_rule(self) -> KernelRule:
        """The rule as the compiled kernel takes it."""
        return KernelRule("one_vs_rest", self.outputs, 2, chosen=self.index)

    def decide(self, scores: Enclosure) -> Decisions:
        """Decide where the error bound allows it; NaN and infinite errors remain undecided."""
        directions = class_margins(self.outputs, self.index)
        margins = scores.values @ directions.T
        radius = _margin_error(scores, directions)
        lost = (margins > radius).any(axis=1)
        won = (margins < -radius).all(axis=1)
        return decisions_of(np.asarray(won), np.asarray(lost))

    def decide_exactly(self, scores: ExactScores) -> Decisions:
        """Decide exact scores; intervals whose points differ in decision remain undecided."""
        if scores.radii is None:
            winners = Argmax(self.classes).decide_exactly(scores)
            return (winners == self.index).astype(np.int8)
        # The chosen class wins ties with later classes and loses them to earlier ones.
        margins = scores.combined(class_margins(self.outputs, self.index))
        low, high = (ends.compare(Dyadic.of(0.0)) for ends in interval_ends(margins))
        earlier = np.arange(self.outputs - 1) < self.index
        lost = np.where(earlier, low >= 0, low > 0).any(axis=1)
        won = np.where(earlier, high < 0, high <= 0).all(axis=1)
        return decisions_of(np.asarray(won), np.asarray(lost))

    def opposing(self, decision: int) -> Objective:
        """Return the margin over the chosen class, or of the chosen class over all others."""
        return self.reaching(1 - decision)

    def reaching(self, decision: int) -> Objective:
        """Return the objective that exceeds its level where a point gets this decision."""
        margins = class_margins(self.outputs, self.index)
        return Objective(-margins, least=True) if decision == 1 else Objective(margins)

    def gap(self, pair: ExactScores) -> float:
        """Return the margin by which the counterpart is on the other side."""
        objective = self.objective(pair[:1])
        margins = pair[1:].combined(objective.directions).floats()[0]
        return float(margins.min() if objective.least else margins.max())

    def margins(self, decisions: tuple[int, ...], scores: Vector | Matrix) -> Vector:
        """Return the score of the chosen class minus the best other score."""
        del decisions
        others = np.delete(scores, self.index, axis=1)
        return np.asarray(scores[:, self.index] - others.max(axis=1))

    def answers_of_outputs(self, outputs: Matrix, *, probabilities: bool) -> Answers:
        """Decide as the source does: probabilities have the same order as scores."""
        del probabilities
        return np.asarray(np.argmax(outputs, axis=1) == self.index)

    def answers_of_labels(self, labels: Array, classes: Array) -> Answers:
        """Return which labels are the chosen class."""
        return np.asarray(labels.ravel() == classes[self.index])

    def read_label(self, label: object, names: tuple[str, ...]) -> Outcome:
        """Parse the name of a class or of a decision."""
        if str(label) not in names:
            return parse_class(label, self.classes) == self.chosen
        return parse_side(label, names)

    def words(self, *, unit: str, log_odds: bool) -> RuleWords:
        """Return the words for results."""
        del unit, log_odds
        return RuleWords(margin=f"margin of {self.chosen}", violation=OTHER_CLASS_MARGIN)

    def explanation(self, names: tuple[str, ...], *, unit: str, log_odds: bool) -> str:
        """Explain how scores become decisions."""
        del names, unit, log_odds
        return f"The decision is whether the class with the largest score is {self.chosen!r}."


def _margin_error(scores: Enclosure, directions: Matrix) -> Matrix:
    """Bound the error of combinations of scores, including the rounding of the combination."""
    sizes = np.abs(directions).T
    with np.errstate(invalid="ignore"):  # 0 · inf where nothing is known: NaN, which is undecided
        return scores.errors @ sizes + DIFFERENCE * (np.abs(scores.values) @ sizes)
