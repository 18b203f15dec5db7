"""Settings of a vote that is fitted to people; defaults adapt to the model, requests do not."""

from dataclasses import dataclass, replace
from typing import Final, Literal, cast

from feta.errors import SchemaError, unknown_choice
from feta.model import Model
from feta.rule.protocol import is_finite_number
from feta.scorer.protocol import has_scores
from feta.space.vote_weights import VoteWeights
from feta.vote.mean_decision import VOTES, VoteName
from feta.vote.probability import CLASS_LINKS, PROBABILITY_LINKS

WeightsName = Literal["empirical", "equal"]
LevelName = Literal["keep", "threshold"]
WEIGHTS: tuple[WeightsName, ...] = ("empirical", "equal")
LEVELS: tuple[LevelName, ...] = ("keep", "threshold")

# The fewest people of a stored combination of sensitive values.
LEAST = 5


class Recommended(str):
    """The text of a default: it adapts to the model, unlike the same text from a user."""

    __slots__ = ()


MEAN_PROBABILITY: Final = cast("VoteName", Recommended("mean_probability"))
EMPIRICAL: Final = cast("WeightsName", Recommended("empirical"))
KEEP: Final = cast("LevelName", Recommended("keep"))


@dataclass(frozen=True, slots=True)
class VoteSettings:
    """What is averaged, with which weights, and which level is kept."""

    vote: VoteName = MEAN_PROBABILITY
    weights: VoteWeights | WeightsName | None = EMPIRICAL  # None: one vote each
    level: float | LevelName | None = KEEP  # None: the model's threshold
    least: int = LEAST
    notices: tuple[str, ...] = ()  # how defaults were adapted, in words

    def __post_init__(self) -> None:
        if self.vote not in VOTES:
            raise SchemaError(f"invalid vote: {unknown_choice(self.vote, VOTES)}")
        if isinstance(self.weights, str) and self.weights not in WEIGHTS:
            raise SchemaError(f"invalid weights: {unknown_choice(self.weights, WEIGHTS)}")
        if isinstance(self.level, str) and self.level not in LEVELS:
            raise SchemaError(f"invalid level: {unknown_choice(self.level, LEVELS)}")
        if isinstance(self.level, bool) or not (
            self.level is None or isinstance(self.level, str) or is_finite_number(self.level)
        ):
            raise SchemaError(f"invalid level: got {self.level!r}; expected a finite number")
        least: object = self.least
        if not isinstance(least, int) or isinstance(least, bool) or least < 1:
            raise SchemaError(f"invalid least: got {least!r}; expected an integer, 1 or more")

    @property
    def needs_people(self) -> bool:
        """Whether weights or level must be fitted."""
        return self.weights == "empirical" or (self.level == "keep" and self.vote != "majority")

    def adapted(self, model: Model) -> "VoteSettings":
        """Return the settings that fit a model: only defaults change, with a notice."""
        if isinstance(self.vote, Recommended):
            vote, why = _nearest_vote(model)
            settings = replace(self, vote=vote, notices=(why,) if why else ())
            return settings.with_level(model)
        return self.with_level(model)

    def with_level(self, model: Model) -> "VoteSettings":
        """Return the settings without a level where none exists; refuse one that was set."""
        if self.level is None or self.level == "threshold":
            return replace(self, level=None)
        if self.vote != "majority" and model.rule.threshold is not None:
            return self
        if isinstance(self.level, Recommended):
            several = model.rule.n_classes > 2 and self.vote != "majority"  # noqa: PLR2004 - classes
            why = ("the vote has no level: the model has several classes",) if several else ()
            return replace(self, level=None, notices=(*self.notices, *why))
        raise SchemaError(
            f"the level does not fit: got level={self.level!r} for the vote {self.vote!r} and the "
            f"rule {model.rule!r}; expected a vote by means and two decisions by a threshold; omit "
            "the level"
        )


def _nearest_vote(model: Model) -> tuple[VoteName, str]:
    """Return the vote that comes nearest to the mean probability, and why it is another one."""
    rule, link = model.rule, model.scorer.link
    if not has_scores(model.scorer):
        return "majority", "the vote is the weighted majority: the model returns labels only"
    if rule.tolerance is not None:
        return "mean_score", "the vote is the mean score: the model has no decisions"
    known = PROBABILITY_LINKS if rule.threshold is not None else CLASS_LINKS
    if link not in known:
        return "mean_score", "the vote is the mean score: the model's scores are no probabilities"
    return "mean_probability", ""
