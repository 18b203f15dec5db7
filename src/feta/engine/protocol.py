"""Interface of an engine, and the budget of a query."""

import time
from dataclasses import dataclass
from typing import Literal, Protocol

from feta.arrays import Matrix
from feta.errors import EngineError, SchemaError
from feta.model import Model
from feta.query import Query
from feta.space.vote_weights import VoteWeights
from feta.verdict.spread import Spread
from feta.verdict.tally import Tally
from feta.verdict.verdict import Verdict

Until = Literal["all", "majority"]


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits on the cost of one query; None means no limit."""

    seconds: float | None = None
    evaluations: int | None = None

    def __post_init__(self) -> None:
        for name in ("seconds", "evaluations"):
            limit = getattr(self, name)
            if limit is not None and (
                not isinstance(limit, int | float) or not 0 <= limit < float("inf")
            ):
                raise SchemaError(
                    f"invalid budget of {name}: got {limit!r}; "
                    "expected a finite number that is not negative"
                )

    def deadline(self) -> float:
        """Return when the time is up if the work starts now, as `time.monotonic` counts."""
        return float("inf") if self.seconds is None else time.monotonic() + self.seconds


UNLIMITED = Budget()


def uncountable(name: str) -> EngineError:
    """Return the error for counting the values of a real-valued attribute."""
    return EngineError(
        f"cannot count counterparts: got {name!r}, which has uncountably many values; "
        "expected finite sensitive attributes; declare it integer, or give a step"
    )


class Engine(Protocol):
    """Answers queries about fairness.

    An engine is sound: `Fair` requires a proof, `Unfair` requires a replayed counterexample, and
    everything else is `Unknown`. Its cost is bounded: a spent budget gives `Unknown`, never an
    exception.
    """

    @property
    def name(self) -> str:
        """The name by which users select it."""
        ...

    @property
    def about(self) -> str:
        """One line about what it can prove."""
        ...

    def accepts(self, model: Model) -> bool:
        """Return whether this engine can work on the model; this must be cheap."""
        ...

    def solve(self, query: Query, budget: Budget) -> Verdict:
        """Answer one query."""
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
        """Count the counterparts' decisions; "majority" may stop once the majority is certain."""
        ...

    def spread(
        self, model: Model, people: Matrix, budget: Budget, *, weights: VoteWeights | None = None
    ) -> Spread:
        """Compute each person's median, lowest and highest counterpart score, exactly."""
        ...
