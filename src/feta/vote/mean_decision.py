"""How a mean decides: what is averaged, and the cut-off."""

from dataclasses import dataclass
from typing import Literal

from feta.errors import SchemaError, unknown_choice
from feta.model import Model
from feta.vote.cutoff import CutOff
from feta.vote.graded_ballot import GradedBallot
from feta.vote.probability import PROBABILITY_LINKS, no_probability, probability_at
from feta.vote.score_mean import ScoreMean
from feta.vote.totals import MeanVote

VoteName = Literal["majority", "mean_score", "mean_probability"]
VOTES: tuple[VoteName, ...] = ("majority", "mean_score", "mean_probability")


@dataclass(frozen=True, slots=True, eq=False)
class MeanDecision:
    """A vote by the mean of all counterparts."""

    vote: MeanVote
    cutoff: CutOff


def mean_decision(
    model: Model, vote: VoteName, level: float | None, ballot: GradedBallot | None
) -> MeanDecision | None:
    """Return how the mean decides; None for a majority. Raise if the vote does not fit the model.

    Without a level, the cut-off is the model's own threshold.
    """
    _check_names(vote, level, ballot)
    if vote == "majority":
        return None
    threshold, link = model.rule.threshold, model.scorer.link
    if threshold is None:
        raise SchemaError(
            f"the vote {vote!r} does not fit the model: got the rule {model.rule!r}; expected two "
            "decisions by a threshold; use vote='majority'"
        )
    favors = model.rule.favors
    if vote == "mean_score":
        return MeanDecision(ScoreMean(), CutOff(threshold if level is None else level, favors))
    if link not in PROBABILITY_LINKS:
        raise no_probability(link)
    own = probability_at(threshold, link) if level is None else level
    return MeanDecision(ballot or GradedBallot.even(link), CutOff(own, favors))


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
