"""Everything of a vote that is stored: settings and fitted numbers."""

from dataclasses import dataclass
from typing import Protocol

from feta.model import Model
from feta.space.vote_weights import VoteWeights
from feta.vote.graded_ballot import GradedBallot
from feta.vote.mean_decision import VoteName


@dataclass(frozen=True, slots=True, eq=False)
class StoredVotes:
    """A vote with its weights, ballot and level."""

    vote: VoteName = "majority"
    level: float | None = None
    weights: VoteWeights | None = None
    ballot: GradedBallot | None = None
    fitted_on: str = ""  # a sha256 of the people to whom weights and level were fitted

    @property
    def is_default(self) -> bool:
        """Whether nothing needs to be stored: every counterpart has one vote."""
        return self.vote == "majority" and self.weights is None


class Decider(Protocol):
    """A model with a vote."""

    @property
    def model(self) -> Model:
        """The model that scores the counterparts."""
        ...

    @property
    def stored_votes(self) -> StoredVotes:
        """How their scores become a decision."""
        ...
