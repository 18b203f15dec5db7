"""Interface of an engine, and the budget of a query."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from feta.arrays import Answers, Matrix
from feta.errors import EngineError, SchemaError
from feta.model import Model
from feta.query import PersonQuery, Query
from feta.rule.comparator import Decisions
from feta.space.vote_weights import VoteWeights
from feta.verdict.means import Means
from feta.verdict.spread import Spread
from feta.verdict.tally import Tally
from feta.verdict.verdict import Verdict
from feta.vote.mean_decision import MeanDecision

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


def check_countable(model: Model) -> None:
    """Raise unless everybody has finitely many counterparts."""
    for axis in model.relation.axes:
        if axis.real:
            raise uncountable(axis.attribute.name)


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

    def accepts(self, query: Query) -> bool:
        """Return whether this engine can answer the query; this must be cheap."""
        ...

    def solve(self, query: PersonQuery, budget: Budget) -> Verdict:
        """Answer one query."""
        ...

    def solve_many(self, queries: Sequence[PersonQuery], budget: Budget) -> list[Verdict]:
        """Answer queries; the budget is for each of them."""
        ...

    def majority(self, model: Model, people: Matrix) -> Answers | None:
        """Decide each person as most counterparts, as fast as possible.

        Return None if `tally` or `spread` must be asked instead: for an invalid row, a near tie,
        or if the engine has no faster way.
        """
        ...

    def mean_decisions(
        self, model: Model, people: Matrix, mean: MeanDecision, *, weights: VoteWeights | None
    ) -> Decisions | None:
        """Decide each person by a mean, as fast as possible; UNDECIDED where only `means` can.

        Return None if `means` must be asked about everybody.
        """
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

    def means(
        self,
        model: Model,
        people: Matrix,
        budget: Budget,
        *,
        mean: MeanDecision,
        weights: VoteWeights | None = None,
    ) -> Means:
        """Decide each person by the mean of the counterparts' scores or grades, exactly."""
        ...
