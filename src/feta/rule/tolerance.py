"""Regression: the scores of any two counterparts within a tolerance."""

from dataclasses import dataclass, replace

import numpy as np

from feta.arrays import Answers, Array, Flags, Matrix, Vector
from feta.dyadic import Dyadic
from feta.errors import NetworkError, SchemaError
from feta.rounding import DIFFERENCE, FLOAT64, Arithmetic
from feta.rule.band import Band
from feta.rule.comparator import Decisions
from feta.rule.labels import parse_score
from feta.rule.protocol import Outcome, Rule, TiesTo, is_finite_number
from feta.rule.words import RuleWords
from feta.scorer.exact_scores import ExactScores
from feta.scorer.kernel import KernelRule
from feta.scorer.protocol import Enclosure, Objective, Scorer, Side

# What a tolerance compares, as named in files. Version 0.1.0 compared each counterpart's score
# with the person's score, which is a different question.
DEFINITION = "span"


@dataclass(frozen=True, slots=True)
class Tolerance:
    """Regression: fair at a person if no two counterparts' scores differ by more than epsilon.

    The span of the scores (highest − lowest) decides, so all counterparts get the same verdict.
    """

    epsilon: float

    def __post_init__(self) -> None:
        if not is_finite_number(self.epsilon) or self.epsilon < 0:
            raise SchemaError(
                f"invalid tolerance: got {self.epsilon!r}; expected a finite number, 0 or more"
            )
        object.__setattr__(self, "epsilon", float(self.epsilon) + 0.0)

    @property
    def n_classes(self) -> int:
        """The number of different decisions: none."""
        return 0

    @property
    def outputs(self) -> int:
        """The number of scores that the rule reads."""
        return 1

    @property
    def outcomes(self) -> tuple[str, ...]:
        """The default names of the decisions: none."""
        return ()

    @property
    def output_counts(self) -> tuple[int, ...]:
        """The numbers of outputs of a scorer that fit."""
        return (1,)

    @property
    def classes(self) -> tuple[str, ...]:
        """No classes: there is one score."""
        return ()

    @property
    def ties_to(self) -> TiesTo:
        """Scores do not vote; the lower median is taken."""
        return "first"

    @property
    def tolerance(self) -> float:
        """The largest span of counterparts' scores."""
        return self.epsilon

    @property
    def threshold(self) -> None:
        """None: scores are not compared with a threshold."""
        return

    @property
    def favors(self) -> Side:
        """No score is favorable; the default side."""
        return "above"

    @property
    def two_sided(self) -> bool:
        """False: there are no decisions."""
        return False

    @property
    def merges_classes(self) -> bool:
        """False: there are no classes."""
        return False

    @property
    def kernel_rule(self) -> KernelRule:
        """The rule as the compiled kernel takes it: inside or outside a band."""
        return KernelRule("band", 1, 2)

    def on_scores_of(self, scorer: Scorer) -> tuple[Scorer, Rule]:
        """Return scorer and rule; raise if equal distances of predictions differ in score."""
        if scorer.link in ("log", "probit"):
            raise NetworkError(
                f"a tolerance does not apply to a model with the link {scorer.link!r}: got "
                f"{self!r}, which bounds differences of scores, not of predictions; expected a "
                "threshold; evaluate the model's own predict instead, with feta.read_callable"
            )
        return scorer, self

    def resolved(self, side: Side | None) -> "Tolerance":
        """Return the rule unchanged: scores that differ by exactly epsilon are within it."""
        del side
        return self

    def one_vs_rest(self, chosen: str) -> Rule:
        """Raise: a regression has no classes."""
        del chosen
        raise SchemaError(
            f"invalid rule for one class against the rest: got {self!r}; expected an Argmax"
        )

    def decide(self, scores: Enclosure) -> Decisions:
        """Raise: a regression makes no decisions."""
        del scores
        raise _no_decisions()

    def decide_exactly(self, scores: ExactScores) -> Decisions:
        """Raise: a regression makes no decisions."""
        del scores
        raise _no_decisions()

    def answers(self, decisions: Decisions) -> Answers:
        """Raise: a regression makes no decisions."""
        del decisions
        raise _no_decisions()

    def opposing(self, decision: int) -> Objective:
        """Raise: a regression makes no decisions."""
        del decision
        raise _no_decisions()

    def reaching(self, decision: int) -> Objective:
        """Raise: a regression makes no decisions."""
        del decision
        raise _no_decisions()

    def source_error(self, arithmetic: Arithmetic) -> float:
        """Return 0: no sigmoid or softmax is applied before the comparison."""
        del arithmetic
        return 0.0

    def comparator(self, reference: ExactScores) -> Band:
        """Return the band around known scores of counterparts."""
        return Band.around(self.epsilon, reference.centers)

    def objective(self, reference: ExactScores) -> Objective:
        """Return the distance to the center of the band around known scores."""
        return self.comparator(reference).objective()

    def separates(self, pair: ExactScores) -> bool:
        """Return whether two scores provably differ by more than epsilon."""
        difference, epsilon = pair[1:].minus(pair[:1]), Dyadic.of(self.epsilon)
        above = difference.signs(epsilon) == 1
        below = difference.signs(Dyadic.of(-self.epsilon)) == -1
        return bool((above | below)[0, 0])

    def differs_in_runtime(self, reference: ExactScores, scores: Enclosure) -> Flags:
        """Return which points provably differ from the first one in the source's runtime, too."""
        del reference
        # The runtime rounds both scores of a pair, so both errors count.
        values, errors = scores.values[:, 0], scores.errors[:, 0]
        size = np.abs(values) + abs(values[0]) + self.epsilon
        with np.errstate(invalid="ignore"):  # inf − inf where nothing is known: NaN proves nothing
            distance = np.abs(values - values[0]) - self.epsilon
        return np.asarray(distance > errors + errors[0] + DIFFERENCE * size + FLOAT64.tiny)

    def pair_decisions(self, pair: ExactScores) -> tuple[int, ...]:
        """Return nothing: a regression makes no decisions."""
        del pair
        return ()

    def gap(self, pair: ExactScores) -> float:
        """Return the distance between the scores of a pair."""
        return float(self.gaps(pair[:1], pair[1:])[0])

    def gaps(self, people: ExactScores, counterparts: ExactScores) -> Vector:
        """Return the distances between the scores of people and counterparts."""
        return np.asarray(np.abs(counterparts.minus(people).floats()[:, 0]))

    def margins(self, decisions: tuple[int, ...], scores: Vector | Matrix) -> Vector:
        """Return the scores."""
        del decisions
        return scores

    def sides(self, scores: ExactScores, reference: ExactScores) -> Decisions:
        """Return which scores exceed the pair's lower one by more than epsilon."""
        centers = scores.centers - reference.centers[:1]
        return (centers.compare(Dyadic.of(self.epsilon)) > 0)[:, 0].astype(np.int8)

    def side_names(self, outcomes: tuple[str, ...]) -> tuple[str, ...]:
        """Return the names of these sides."""
        del outcomes
        return ("within the tolerance of the lower score, or below", "higher than allowed")

    def answers_of_outputs(self, outputs: Matrix, *, probabilities: bool) -> Answers:
        """Return the scores."""
        del probabilities
        return outputs[:, 0]

    def answers_of_labels(self, labels: Array, classes: Array) -> Answers:
        """Raise: a classifier's labels are not scores."""
        del labels, classes
        raise NetworkError(
            f"the rule does not fit a classifier: got {self!r}; expected a rule on classes"
        )

    def replays(self, answers: Answers, decisions: tuple[int, ...]) -> bool:
        """Return whether the source's two scores differ by more than epsilon."""
        del decisions
        return bool(abs(answers[0] - answers[1]) > self.epsilon)

    def describe(self, outcome: Outcome, names: tuple[str, ...]) -> str | float:
        """Return the score."""
        del names
        return float(outcome)

    def read_label(self, label: object, names: tuple[str, ...]) -> Outcome:
        """Parse a finite number."""
        del names
        return parse_score(label)

    def words(self, *, unit: str, log_odds: bool) -> RuleWords:
        """Return the words for results."""
        del log_odds
        words = RuleWords(digits=",.6g", unit=unit)
        limit = words.amount(self.epsilon)
        return replace(
            words,
            counterexample=f"two counterparts whose scores differ by more than {limit}",
            same_outcome=f"the same score to within {limit}",
            changes="only differences",
            pair_names=("lower score", "higher score"),
            flip=(
                "Fair scores (feta predict) would change",
                f"of the scores by more than {limit}.",
            ),
        )

    def explanation(self, names: tuple[str, ...], *, unit: str, log_odds: bool) -> str:
        """Explain what is compared."""
        del names, log_odds
        amount = f"{self.epsilon:,.6g} {unit}".strip()
        return (
            "The result is the score itself. The scores of all counterparts of a person, "
            f"including the person, may span {amount} at most: highest less lowest."
        )


def _no_decisions() -> SchemaError:
    return SchemaError(
        "invalid rule: got a Tolerance; expected a rule that makes decisions; a regression model "
        "has scores only, use model.score"
    )
