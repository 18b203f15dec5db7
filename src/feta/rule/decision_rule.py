"""What all rules that make decisions have in common."""

from abc import ABC, abstractmethod
from typing import Self

import numpy as np

from feta.arrays import Answers, Flags, Matrix, Vector
from feta.errors import SchemaError
from feta.rounding import Arithmetic, sigmoid_error
from feta.rule.comparator import UNDECIDED, Comparator, DecisionComparator, Decisions
from feta.rule.protocol import Outcome, Rule, TiesTo
from feta.scorer.exact_scores import ExactScores
from feta.scorer.protocol import Enclosure, Objective, Scorer, Side


class DecisionRule(ABC):
    """A rule whose result is one of finitely many decisions."""

    __slots__ = ()

    @property
    def tolerance(self) -> None:
        """None: decisions are compared, not scores."""
        return

    @property
    def threshold(self) -> float | None:
        """None: there is no threshold."""
        return None

    @property
    def ties_to(self) -> TiesTo:
        """The last decision, which is the favorable one, wins a tied vote."""
        return "last"

    @property
    def two_sided(self) -> bool:
        """Whether one of two decisions is favorable."""
        return True

    @property
    def merges_classes(self) -> bool:
        """Whether several classes of the scorer count as one decision."""
        return False

    def on_scores_of(self, scorer: Scorer) -> tuple[Scorer, Self]:
        """Return scorer and rule unchanged: scores of classes are compared with each other."""
        return scorer, self

    def resolved(self, side: Side | None) -> Self:
        """Return the rule unchanged: the first class wins a tie of scores."""
        del side
        return self

    def one_vs_rest(self, chosen: str) -> Rule:
        """Raise: only a choice between several classes has such a view."""
        del chosen
        raise SchemaError(
            f"invalid rule for one class against the rest: got {self!r}; expected an Argmax"
        )

    @abstractmethod
    def decide(self, scores: Enclosure) -> Decisions:
        """Decide where the error bound allows it; NaN and infinite errors remain undecided."""

    @abstractmethod
    def decide_exactly(self, scores: ExactScores) -> Decisions:
        """Decide exact scores; intervals whose points differ in decision remain undecided."""

    def answers(self, decisions: Decisions) -> Answers:
        """Return True for the favorable decision."""
        return decisions == 1

    def source_error(self, arithmetic: Arithmetic) -> float:
        """Bound the error that a softmax adds, in units of the score.

        It keeps the order, but rounds differences below a few units to a tie.
        """
        return sigmoid_error(0.0, arithmetic)

    def comparator(self, reference: ExactScores) -> Comparator:
        """Return a comparator with the decision for a person's scores."""
        return DecisionComparator(self, int(self.decide_exactly(reference)[0]))

    def reference_decision(self, reference: ExactScores) -> int:
        """Return the decision for a person's scores, or the first one if it is undecided."""
        return max(0, int(self.decide_exactly(reference)[0]))

    @abstractmethod
    def opposing(self, decision: int) -> Objective:
        """Return what `worst` maximizes for a person who gets this decision."""

    def objective(self, reference: ExactScores) -> Objective:
        """Return what `worst` maximizes, given a person's scores."""
        return self.opposing(self.reference_decision(reference))

    @abstractmethod
    def gap(self, pair: ExactScores) -> float:
        """Return how far apart a pair is (Eq. 4)."""

    def gaps(self, people: ExactScores, counterparts: ExactScores) -> Vector:
        """Return how far apart each person and the counterpart in the same row are."""
        rows = range(len(people))
        pairs = [people[n : n + 1].joined(counterparts[n : n + 1]) for n in rows]
        return np.array([self.gap(pair) for pair in pairs], dtype=np.float64)

    def separates(self, pair: ExactScores) -> bool:
        """Return whether two people provably get different decisions."""
        first, second = self.decide_exactly(pair)
        return bool(first != second and UNDECIDED not in (first, second))

    def differs_in_runtime(self, reference: ExactScores, scores: Enclosure) -> Flags:
        """Return which points provably differ from the first one in the source's runtime, too."""
        differs = self.comparator(reference).decide(scores) == 1
        return np.asarray(differs & (self.decide(scores)[0] != UNDECIDED))

    def pair_decisions(self, pair: ExactScores) -> tuple[int, ...]:
        """Return the decisions of a pair."""
        return tuple(self.decide_exactly(pair).tolist())

    def margins(self, decisions: tuple[int, ...], scores: Vector | Matrix) -> Vector:
        """Return the scores."""
        del decisions
        return scores

    def sides(self, scores: ExactScores, reference: ExactScores) -> Decisions:
        """Return the decisions."""
        del reference
        return self.decide_exactly(scores)

    def side_names(self, outcomes: tuple[str, ...]) -> tuple[str, ...]:
        """Return the names of the decisions."""
        return outcomes

    def replays(self, answers: Answers, decisions: tuple[int, ...]) -> bool:
        """Return whether the source's two answers are the decisions of a pair."""
        return tuple(answers.tolist()) == decisions

    def describe(self, outcome: Outcome, names: tuple[str, ...]) -> str | float:
        """Return the name of a decision."""
        return names[int(outcome)]
