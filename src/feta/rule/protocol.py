"""The protocol of rules: how scores become decisions, and what is compared between people."""

from typing import Literal, Protocol

import numpy as np

from feta.arrays import Answers, Array, Flags, Matrix, Vector
from feta.rounding import Arithmetic
from feta.rule.comparator import Comparator, Decisions
from feta.rule.words import RuleWords
from feta.scorer.exact_scores import ExactScores
from feta.scorer.kernel import KernelRule
from feta.scorer.protocol import Enclosure, Objective, Scorer, Side

# What a model returns for a person. Two decisions: True is favorable. Several classes: the index
# of the class. Regression: the score.
Outcome = bool | int | float

TiesTo = Literal["first", "last"]


class Rule(Protocol):
    """Turns scores into decisions; a regression compares scores within a tolerance instead."""

    @property
    def n_classes(self) -> int:
        """The number of different decisions; 0 for a regression."""
        ...

    @property
    def outputs(self) -> int:
        """The number of scores that the rule reads."""
        ...

    @property
    def output_counts(self) -> tuple[int, ...]:
        """The numbers of outputs of a scorer that fit; two may become one, their difference."""
        ...

    @property
    def outcomes(self) -> tuple[str, ...]:
        """The default names of the decisions."""
        ...

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the scorer's classes; none if there is one score."""
        ...

    @property
    def ties_to(self) -> TiesTo:
        """The decision that wins a tied vote: the first or the last one."""
        ...

    @property
    def tolerance(self) -> float | None:
        """The largest span of counterparts' scores, for a regression; None for decisions."""
        ...

    @property
    def threshold(self) -> float | None:
        """The threshold on one score; None if the rule has none."""
        ...

    @property
    def favors(self) -> Side:
        """The favorable side of a threshold; "above" for other rules."""
        ...

    @property
    def two_sided(self) -> bool:
        """Whether one of two decisions is favorable."""
        ...

    @property
    def merges_classes(self) -> bool:
        """Whether several classes of the scorer count as one decision."""
        ...

    @property
    def kernel_rule(self) -> KernelRule:
        """The rule as the compiled kernel takes it."""
        ...

    def on_scores_of(self, scorer: Scorer) -> tuple[Scorer, "Rule"]:
        """Return the scorer, or one of its outputs, and the rule that compares its scores.

        A rule may have been stated in terms of the source's predictions.
        """
        ...

    def resolved(self, side: Side | None) -> "Rule":
        """Return the rule with ties decided; `side` is the side that wins ties in the source."""
        ...

    def one_vs_rest(self, chosen: str) -> "Rule":
        """Return the rule that decides only between the chosen class and all others."""
        ...

    def decide(self, scores: Enclosure) -> Decisions:
        """Decide where the error bound allows it; NaN and infinite errors remain undecided."""
        ...

    def decide_exactly(self, scores: ExactScores) -> Decisions:
        """Decide exact scores; intervals whose points differ in decision remain undecided."""
        ...

    def answers(self, decisions: Decisions) -> Answers:
        """Return decisions as a model returns them: booleans, or the indices of classes."""
        ...

    def comparator(self, reference: ExactScores) -> Comparator:
        """Return what compares counterparts with a person's scores."""
        ...

    def objective(self, reference: ExactScores) -> Objective:
        """Return what `worst` maximizes, given a person's scores.

        If these leave the person's decision undecided, it is the objective of one decision:
        agreement with any one decision proves that all counterparts get the same.
        """
        ...

    def opposing(self, decision: int) -> Objective:
        """Return what `worst` maximizes for a person who gets this decision."""
        ...

    def reaching(self, decision: int) -> Objective:
        """Return the objective that exceeds its level where a point gets this decision."""
        ...

    def separates(self, pair: ExactScores) -> bool:
        """Return whether two people provably differ: in decision, or by more than allowed."""
        ...

    def differs_in_runtime(self, reference: ExactScores, scores: Enclosure) -> Flags:
        """Return which points provably differ from the first one in the source's runtime, too."""
        ...

    def pair_decisions(self, pair: ExactScores) -> tuple[int, ...]:
        """Return the decisions of a pair; none for a regression."""
        ...

    def gap(self, pair: ExactScores) -> float:
        """Return how far apart a pair is (Eq. 4)."""
        ...

    def gaps(self, people: ExactScores, counterparts: ExactScores) -> Vector:
        """Return how far apart each person and the counterpart in the same row are."""
        ...

    def margins(self, decisions: tuple[int, ...], scores: Vector | Matrix) -> Vector:
        """Return the margin of each person of a pair, for display."""
        ...

    def sides(self, scores: ExactScores, reference: ExactScores) -> Decisions:
        """Return on which side of a pair's boundary points are, for a picture."""
        ...

    def side_names(self, outcomes: tuple[str, ...]) -> tuple[str, ...]:
        """Return the names of these sides."""
        ...

    def source_error(self, arithmetic: Arithmetic) -> float:
        """Bound the error that a last sigmoid or softmax adds, in units of the score."""
        ...

    def answers_of_outputs(self, outputs: Matrix, *, probabilities: bool) -> Answers:
        """Decide as the source does, by its scores, or by its probabilities."""
        ...

    def answers_of_labels(self, labels: Array, classes: Array) -> Answers:
        """Return the outcomes that correspond to the labels a classifier predicts."""
        ...

    def replays(self, answers: Answers, decisions: tuple[int, ...]) -> bool:
        """Return whether the source's two answers confirm a pair with these decisions."""
        ...

    def describe(self, outcome: Outcome, names: tuple[str, ...]) -> str | float:
        """Return the name of an outcome; a score remains a number."""
        ...

    def read_label(self, label: object, names: tuple[str, ...]) -> Outcome:
        """Parse the outcome that a person should get; raise `DomainError` otherwise."""
        ...

    def words(self, *, unit: str, log_odds: bool) -> RuleWords:
        """Return the words for results; `unit` is the unit of scores."""
        ...

    def explanation(self, names: tuple[str, ...], *, unit: str, log_odds: bool) -> str:
        """Explain in a sentence or two how scores become decisions."""
        ...


def rule_kind(rule: Rule) -> str:
    """Return the name of the kind of rule, for files and messages."""
    return type(rule).__name__


def check_fits(rule: Rule, outputs: int) -> str:
    """Return why a scorer with this number of outputs does not fit; empty if it does."""
    if outputs in rule.output_counts:
        return ""
    expected = " or ".join(map(str, rule.output_counts))
    return f"got {outputs}; expected {expected} for {rule_kind(rule)}"


def rule_options(rule: Rule) -> dict[str, object]:
    """Return the fields of a rule by name, for files."""
    fields = getattr(type(rule), "__dataclass_fields__", {})
    return {name: getattr(rule, name) for name, field in fields.items() if field.compare}


def is_finite_number(value: object) -> bool:
    """Return whether a value is a number that float64 can hold."""
    if not isinstance(value, int | float | np.number):
        return False
    try:
        return bool(np.isfinite(float(value)))
    except OverflowError:
        return False
