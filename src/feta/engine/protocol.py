"""Engine: what an engine is and promises, and what it may spend."""

import time
from dataclasses import dataclass
from typing import Literal, Protocol

from feta.arrays import Matrix
from feta.errors import SchemaError
from feta.model import Model
from feta.query import Query
from feta.space.vote_weights import VoteWeights
from feta.verdict.spread import Spread
from feta.verdict.tally import Tally
from feta.verdict.verdict import Verdict

Until = Literal["all", "majority"]


@dataclass(frozen=True, slots=True)
class Budget:
    """What one question may cost; None is no limit."""

    seconds: float | None = None
    evaluations: int | None = None

    def __post_init__(self) -> None:
        for name in ("seconds", "evaluations"):
            limit = getattr(self, name)
            if limit is not None and (
                not isinstance(limit, int | float) or not 0 <= limit < float("inf")
            ):
                raise SchemaError(
                    f"a budget of {name} must be 0 or more, and finite, got {limit!r}"
                )

    def deadline(self) -> float:
        """Tell when the time is up, by `time.monotonic`, if the work starts now."""
        return float("inf") if self.seconds is None else time.monotonic() + self.seconds


UNLIMITED = Budget()


class Engine(Protocol):
    """Answers questions, and promises two things.

    Sound: Fair only with a proof, Unfair only with a witness, else Unknown.
    Bounded: a spent budget is an answer, Unknown, never an exception.
    """

    @property
    def name(self) -> str:
        """What a user calls it."""
        ...

    @property
    def about(self) -> str:
        """What it can prove, in a line."""
        ...

    def accepts(self, model: Model) -> bool:
        """Say, cheaply, whether this engine can try questions about the model at all."""
        ...

    def solve(self, query: Query, budget: Budget) -> Verdict:
        """Answer one question."""
        ...

    def tally(
        self,
        model: Model,
        people: Matrix,
        budget: Budget,
        *,
        until: Until,
        weights: VoteWeights | None = None,
    ) -> Tally:
        """Count the counterparts' decisions; "majority" may stop where the majority is certain."""
        ...

    def spread(
        self, model: Model, people: Matrix, budget: Budget, *, weights: VoteWeights | None = None
    ) -> Spread:
        """Find each person's median, lowest and highest counterpart score, exactly."""
        ...
