"""Two decisions by a threshold on one score."""

from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Literal, Self, assert_never

import numpy as np

from feta.arrays import Answers, Array, Flags, Matrix, Vector
from feta.dyadic import Dyadic
from feta.errors import SchemaError, unknown_choice
from feta.rounding import Arithmetic, sigmoid_error
from feta.rule.comparator import UNDECIDED, Decisions
from feta.rule.decision_rule import DecisionRule
from feta.rule.intervals import decisions_of, interval_ends
from feta.rule.inverse_links import nearest_logarithm, nearest_logit, nearest_probit
from feta.rule.labels import parse_side
from feta.rule.protocol import Outcome, is_finite_number
from feta.rule.words import RuleWords
from feta.scorer.exact_scores import ExactScores
from feta.scorer.kernel import KernelRule
from feta.scorer.protocol import Enclosure, Objective, Scorer, Side, has_scores, may_be_log_odds

_SIDES = ("above", "below")
_EQUALITIES = ("favorable", "unfavorable")


@dataclass(frozen=True, slots=True)
class Threshold(DecisionRule):
    """Favorable if the score is on one side of a value; `equality` decides ties.

    With `equality=None`, ties are decided as by the source of the network. If that is not known,
    they are favorable.
    """

    value: float
    favors: Side = "above"
    equality: Literal["favorable", "unfavorable"] | None = None
    # What was stated instead of `value`, until `on_scores_of` relates it to the scores of a model.
    probability: float | None = field(default=None, kw_only=True, repr=False, compare=False)
    prediction: float | None = field(default=None, kw_only=True, repr=False, compare=False)

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
        """Return a threshold on the probability of the second class.

        `value` is the float64 nearest to logit(p). A model compares the probability itself if its
        scores are shares of votes, and the quantile of p if its link is the probit.
        """
        if not 0 < probability < 1:
            raise SchemaError(
                f"invalid probability threshold: got {probability!r}; expected a number between "
                "0 and 1; specify a score instead"
            )
        stated = float(probability)
        return cls(nearest_logit(stated), favors, probability=stated)

    @classmethod
    def at_prediction(cls, prediction: float, favors: Side = "above") -> Self:
        """Return a threshold on what the source predicts.

        `value` is the float64 nearest to ln(y), for a model with a log link. A model without a
        link compares y itself, and one that predicts probabilities compares them with y.
        """
        if not (is_finite_number(prediction) and prediction > 0):
            raise SchemaError(
                f"invalid threshold on predictions: got {prediction!r}; expected a number above "
                "0; use Threshold(value) for a threshold on scores"
            )
        stated = float(prediction)
        return cls(nearest_logarithm(stated), favors, prediction=stated)

    def on_scores_of(self, scorer: Scorer) -> tuple[Scorer, "Threshold"]:
        """Return the scorer, or one of its outputs, and the rule that compares its scores."""
        rule = replace(self, probability=None, prediction=None)
        if self.probability is not None:
            return _at_probability(self.probability, rule, scorer)
        if self.prediction is None or scorer.link == "log":
            return scorer, rule
        if scorer.link == "identity":
            return scorer, replace(rule, value=self.prediction)
        if self.prediction < 1:
            return _at_probability(self.prediction, rule, scorer)
        raise SchemaError(
            f"invalid threshold on predictions: got {self.prediction!r}, and a model that predicts "
            "probabilities; expected a number between 0 and 1"
        )

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
    def output_counts(self) -> tuple[int, ...]:
        """The numbers of outputs of a scorer that fit; the difference of two is one score."""
        return (1, 2)

    @property
    def classes(self) -> tuple[str, ...]:
        """No classes: there is one score."""
        return ()

    @property
    def threshold(self) -> float:
        """The threshold on the score."""
        return self.value

    @property
    def kernel_rule(self) -> KernelRule:
        """The rule as the compiled kernel takes it."""
        return KernelRule(
            "threshold",
            1,
            2,
            self.value,
            above=self.favors == "above",
            ties_favorable=self.equality != "unfavorable",
        )

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

    def decide_exactly(self, scores: ExactScores) -> Decisions:
        """Decide exact scores; intervals with scores on both sides remain undecided."""
        if scores.radii is None:
            return self._is_favorable(scores.centers).astype(np.int8)
        low, high = (self._is_favorable(ends) for ends in interval_ends(scores))
        return decisions_of(low & high, ~(low | high))

    def _is_favorable(self, scores: Dyadic) -> Flags:
        side = scores.compare(Dyadic.of(self.value))[:, 0]
        favorable = side == 1 if self.favors == "above" else side == -1
        return favorable if self.equality == "unfavorable" else favorable | (side == 0)

    def source_error(self, arithmetic: Arithmetic) -> float:
        """Bound the error that a sigmoid before the comparison adds, in units of the score."""
        return sigmoid_error(self.value, arithmetic)

    def opposing(self, decision: int) -> Objective:
        """Return the signed distance toward the decision that a person does not get.

        This is `|z − f(x)|` of Eq. 4 without the absolute value, because the other decision is on
        one side only.
        """
        return self.reaching(1 - decision)

    def reaching(self, decision: int) -> Objective:
        """Return the objective that exceeds its level where a point gets this decision."""
        sign = 1.0 if (decision == 1) == (self.favors == "above") else -1.0
        return Objective(np.array([[sign]]), level=sign * self.value)

    def gap(self, pair: ExactScores) -> float:
        """Return the distance between the scores of a pair."""
        return float(self.gaps(pair[:1], pair[1:])[0])

    def gaps(self, people: ExactScores, counterparts: ExactScores) -> Vector:
        """Return the distances between the scores of people and counterparts."""
        return np.asarray(np.abs(counterparts.minus(people).floats()[:, 0]))

    def answers_of_outputs(self, outputs: Matrix, *, probabilities: bool) -> Answers:
        """Decide as the source does, by its scores, or by its probabilities."""
        threshold = probability_of(self.value) if probabilities else self.value
        if outputs.shape[1] == 2 and not probabilities:  # noqa: PLR2004 - two classes
            value = outputs[:, 1] - outputs[:, 0]
        else:
            value = outputs[:, -1]
        favorable = value > threshold if self.favors == "above" else value < threshold
        return np.asarray(favorable | ((value == threshold) & (self.equality != "unfavorable")))

    def answers_of_labels(self, labels: Array, classes: Array) -> Answers:
        """Return which labels are favorable; the second class has the higher scores."""
        return np.asarray((labels.ravel() == classes[1]) == (self.favors == "above"))

    def read_label(self, label: object, names: tuple[str, ...]) -> Outcome:
        """Parse the name of a decision, or 1 and 0."""
        return parse_side(label, names)

    def words(self, *, unit: str, log_odds: bool) -> RuleWords:
        """Return the words for results."""
        del unit
        likely = int(self.favors == "above")
        if not log_odds:
            return RuleWords(likely=likely)
        return RuleWords(
            likely=likely,
            margin="score (log-odds)",
            violation="The scores (log-odds) of the worst pairs differ by",
        )

    def explanation(self, names: tuple[str, ...], *, unit: str, log_odds: bool) -> str:
        """Explain how scores become decisions."""
        del unit
        unfavorable, favorable = names
        sides = ("above", "below") if self.favors == "above" else ("below", "above")
        ties = ("", "at or ") if self.equality == "unfavorable" else ("at or ", "")
        first, second = (f"{tie}{side}" for tie, side in zip(ties, sides, strict=True))
        words = (
            f"A score {first} {self.value:.6g} gives the decision {favorable!r}, a score {second} "
            f"it gives {unfavorable!r}."
        )
        if not log_odds:
            return words
        return (
            f"{words} Scores are log-odds, before the model's last sigmoid: {self.value:.6g} is "
            f"the probability {probability_of(self.value):.6g}."
        )


def probability_of(score: float) -> float:
    """Return the probability that corresponds to a score."""
    return float(1 / (1 + np.exp(-np.clip(score, -700.0, 700.0))))  # exp(700) is finite


def _at_probability(
    probability: float, rule: Threshold, scorer: Scorer
) -> tuple[Scorer, Threshold]:
    """Return scorer and rule for a threshold on the probability of the second class.

    Shares of two classes need no logarithm: a share is compared with the probability itself.
    At 0.5 the larger share decides, as in the source.
    """
    match scorer.link:
        case "logit":
            return scorer, replace(rule, value=nearest_logit(probability))
        case "probit":
            return scorer, replace(rule, value=nearest_probit(probability))
        case "share":
            return _at_share(probability, rule, scorer)
        case "share_margin":
            return scorer, replace(rule, value=_margin_of_shares(probability))
        case "identity" | "log":
            if may_be_log_odds(scorer) or _decides_by_sign(probability, scorer):
                return scorer, replace(rule, value=nearest_logit(probability))
            raise SchemaError(
                f"invalid threshold on probabilities: got {probability!r}, and a model whose "
                "scores are not log-odds; expected a threshold on its scores, Threshold(value), or "
                "on its predictions, Threshold.at_prediction(value)"
            )
    assert_never(scorer.link)


def _at_share(probability: float, rule: Threshold, scorer: Scorer) -> tuple[Scorer, Threshold]:
    if probability == 0.5 and scorer.outputs > 1:  # noqa: PLR2004 - the larger share
        return scorer, replace(rule, value=0.0)
    if not has_scores(scorer):
        raise SchemaError(
            f"invalid threshold on probabilities: got {probability!r}, and a model that returns "
            "labels; expected 0.5, the decision of the model itself"
        )
    return scorer.output(scorer.outputs - 1), replace(rule, value=probability)


def _margin_of_shares(probability: float) -> float:
    """Return 2p − 1, the second share minus the first."""
    margin = 2 * probability - 1
    if Fraction(margin) == 2 * Fraction(probability) - 1:
        return margin
    raise SchemaError(
        f"invalid threshold on probabilities: got {probability!r}, and a model that compares the "
        "difference of two shares; expected a model with one score per class; read it again"
    )


def _decides_by_sign(probability: float, scorer: Scorer) -> bool:
    """Return whether the source compares scores with 0 where others compare p with 0.5."""
    own_scores = scorer.link == "identity" and scorer.equality is not None
    return own_scores and probability == 0.5  # noqa: PLR2004 - the default of a classifier
