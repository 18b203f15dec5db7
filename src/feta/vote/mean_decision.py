"""How a mean decides: what is averaged, and what the mean is compared with."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

from feta.errors import SchemaError, unknown_choice
from feta.model import Model
from feta.rule.protocol import Rule
from feta.scorer.protocol import SHARES, has_scores
from feta.space.vote_weights import VoteWeights
from feta.vote.class_means import ClassMeans
from feta.vote.cutoff import CutOff
from feta.vote.graded_ballot import UNIT, Edge, GradedBallot
from feta.vote.probability import (
    CLASS_LINKS,
    PROBABILITY_LINKS,
    no_probability,
    probability_at,
    score_of,
)
from feta.vote.score_mean import ScoreMean
from feta.vote.softmax_mean import SoftmaxMean
from feta.vote.totals import MeanVote, SumRule

# Sums of grades are integers that float64 holds exactly.
LARGEST_SUM = 2**53

# Bounds on the probability of a threshold. A mean of grades that is lower is 0, one that is
# higher is 1, so that a probability that float64 rounds to 0 or 1 separates the two sides.
SMALLEST, LARGEST = 2.0**-53, 1 - 2.0**-53

VoteName = Literal["majority", "mean_score", "mean_probability"]
VOTES: tuple[VoteName, ...] = ("majority", "mean_score", "mean_probability")


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class MeanDecision:
    """A vote by the mean of all counterparts."""

    vote: MeanVote
    cutoff: CutOff | None = None  # of two decisions
    classes: ClassMeans | None = None  # of several; with neither, the outcome is the mean itself

    @property
    def rule(self) -> SumRule | None:
        """What decides about sums; None for a regression."""
        return self.cutoff or self.classes


def mean_decision(
    model: Model, vote: VoteName, level: float | None, ballot: GradedBallot | None
) -> MeanDecision | None:
    """Return how the mean decides; None for a majority. Raise if the vote does not fit the model.

    Without a level, the cut-off is the model's own threshold.
    """
    _check_names(vote, level, ballot)
    if vote == "majority":
        return None
    _check_scores(model, vote)
    rule = model.rule
    if rule.threshold is not None:
        return _of_threshold(model, vote, level, ballot)
    _check_no_level(model, vote, level, ballot)
    if rule.tolerance is not None:
        if vote == "mean_probability":
            raise _not_fitting(model, vote, "decisions; use vote='mean_score'")
        return MeanDecision(ScoreMean())
    return MeanDecision(_class_vote(model, vote), classes=ClassMeans(rule))


def majority_of_listed(model: Model, weights: VoteWeights | None) -> MeanDecision | None:
    """Return a weighted majority of two decisions as a mean, for the kernel only.

    A score on the threshold is never within certain bounds there, so exact arithmetic decides it.
    """
    threshold = model.rule.threshold
    if weights is None or threshold is None or weights.total * UNIT >= LARGEST_SUM:
        return None
    ballot = GradedBallot(np.array([threshold]), np.array([0, UNIT]))
    return MeanDecision(ballot, CutOff(0.5, model.rule.favors))


def _of_threshold(
    model: Model, vote: VoteName, level: float | None, ballot: GradedBallot | None
) -> MeanDecision:
    """Return the vote of two decisions; a level is in the unit of the mean."""
    threshold, link, favors = model.rule.threshold, model.scorer.link, model.rule.favors
    assert threshold is not None  # the caller checks
    if vote == "mean_score":
        return MeanDecision(ScoreMean(), CutOff(threshold if level is None else level, favors))
    if link not in PROBABILITY_LINKS:
        raise no_probability(link)
    if link in SHARES:
        return _of_shares(model, level, ballot)
    if level is not None:
        even = GradedBallot.even(link, edge_at(model, level))
        return MeanDecision(ballot or even, CutOff(level, favors))
    own = min(max(probability_at(threshold, link), SMALLEST), LARGEST)
    edge = Edge(_first_above(model.rule, threshold), own, favors)
    return MeanDecision(ballot or GradedBallot.even(link, edge), CutOff(own, favors))


def edge_at(model: Model, level: float) -> Edge | None:
    """Return a level as a threshold of a ballot; None if no score has this probability."""
    if not 0 < level < 1:
        return None
    score = score_of(level, model.scorer.link)
    return Edge(_first_above(model.rule, score), level, model.rule.favors)


def _first_above(rule: Rule, score: float) -> float:
    """Return the lowest float64 on the upper side of a cut-off.

    A score on the cut-off is on the side that the rule decides. For the lower side, the next
    float64 is the first one above.
    """
    ties_favorable = rule.kernel_rule.ties_favorable
    if ties_favorable == (rule.favors == "above"):
        return score
    return float(np.nextafter(score, np.inf))


def _of_shares(model: Model, level: float | None, ballot: GradedBallot | None) -> MeanDecision:
    """Return the vote of shares, whose mean is exact and needs no ballot."""
    if ballot is not None:
        raise SchemaError(
            "the vote 'mean_probability' has no ballot here: got one; expected None, because "
            "shares of votes are averaged exactly"
        )
    threshold, favors = model.rule.threshold, model.rule.favors
    assert threshold is not None  # the caller checks
    margins = model.scorer.link == "share_margin"
    own = probability_at(threshold, model.scorer.link)
    if level is None and margins and Fraction(own) != (1 + Fraction(threshold)) / 2:
        return MeanDecision(ScoreMean(), CutOff(threshold, favors))  # the rounded one differs
    return MeanDecision(
        ScoreMean(of_margins=margins), CutOff(own if level is None else level, favors)
    )


def _class_vote(model: Model, vote: VoteName) -> MeanVote:
    """Return what counterparts contribute per class."""
    link = model.scorer.link
    if vote == "mean_score" or link == "share":
        return ScoreMean()
    if link not in CLASS_LINKS:
        raise no_probability(link)
    return SoftmaxMean()


def _check_names(vote: str, level: float | None, ballot: GradedBallot | None) -> None:
    if vote not in VOTES:
        raise SchemaError(f"invalid vote: {unknown_choice(vote, VOTES)}")
    if vote == "majority" and level is not None:
        raise SchemaError(
            f"a majority has no level: got {level!r}; expected None; use vote='mean_score' or "
            "vote='mean_probability'"
        )
    if vote != "mean_probability" and ballot is not None:
        raise SchemaError(
            f"the vote {vote!r} has no ballot: got one; expected None; use vote='mean_probability'"
        )


def _check_scores(model: Model, vote: VoteName) -> None:
    if not has_scores(model.scorer):
        raise _not_fitting(model, vote, "scores, not labels only; use vote='majority'")


def _check_no_level(
    model: Model, vote: VoteName, level: float | None, ballot: GradedBallot | None
) -> None:
    if level is not None:
        raise _not_fitting(
            model, vote, f"two decisions by a threshold for the level {level!r}; omit the level"
        )
    if ballot is not None:
        raise _not_fitting(model, vote, "two decisions by a threshold for a ballot; omit it")


def _not_fitting(model: Model, vote: VoteName, expected: str) -> SchemaError:
    return SchemaError(
        f"the vote {vote!r} does not fit the model: got the rule {model.rule!r} and "
        f"{'scores' if has_scores(model.scorer) else 'labels only'}; expected {expected}"
    )
