"""The people to whom votes are fitted, and the sums over their counterparts."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from feta.arrays import Counts, Matrix
from feta.engine.budget_tracker import BudgetTracker
from feta.engine.means import MeanSums
from feta.engine.protocol import UNLIMITED
from feta.model import Model
from feta.space.vote_weights import VoteWeights
from feta.vote.totals import ExactTotals, MeanVote, Totals
from feta.wider_limits import groups


@dataclass(frozen=True, eq=False)
class Crowd:
    """People of different keys, in an order that does not depend on that of the table."""

    model: Model
    people: Matrix
    numbers: Counts  # of people with each key
    n_favorable: int  # of all people, as the model decides them

    @classmethod
    def of(cls, model: Model, people: Matrix) -> "Crowd":
        """Sort people and deduplicate them by their keys."""
        rows, counts = np.unique(people + 0.0, axis=0, return_counts=True)
        index: dict[bytes, int] = {}
        inverse = [index.setdefault(key, len(index)) for key in model.relation.keys(rows)]
        first = np.unique(inverse, return_index=True)[1]
        numbers = np.bincount(inverse, weights=counts).astype(np.int64)
        n_favorable = sum(
            int(counts[part][part_model.decide(rows[part])].sum())
            for part_model, part in groups(model, rows)
        )
        return cls(model, rows[first], numbers, n_favorable)

    @cached_property
    def parts(self) -> list[tuple[Model, Counts]]:
        """The models that decide these people, and the rows of each."""
        return groups(self.model, self.people)

    @cached_property
    def models(self) -> dict[int, Model]:
        """The model of each row."""
        return {row: model for model, rows in self.parts for row in rows.tolist()}


@dataclass(frozen=True, eq=False)
class CrowdSums:
    """Sums over the counterparts of a crowd; `scale` times the mean of each."""

    crowd: Crowd
    vote: MeanVote
    weights: VoteWeights | None

    @property
    def sign(self) -> int:
        """1 if high means are favorable, otherwise −1."""
        return 1 if self.crowd.model.rule.favors == "above" else -1

    @cached_property
    def scale(self) -> int:
        """The number by which a sum is divided."""
        return self._of(self.crowd.model).scale(self.crowd.people[:1])

    @cached_property
    def totals(self) -> Totals:
        """The sums of everybody."""
        return self.totals_of(np.arange(len(self.crowd.people)))

    def totals_of(self, rows: Counts) -> Totals:
        """Return the sums of some people, in ascending order of their rows."""
        people, tracker = self.crowd.people, BudgetTracker(UNLIMITED)
        outputs = self.crowd.model.scorer.outputs
        lows = np.full((len(people), outputs), np.nan)
        highs = lows.copy()
        for model, part in self.crowd.parts:
            sums, chosen = self._of(model), part[np.isin(part, rows)]
            for group in sums.groups(len(chosen), people[chosen]):
                totals = sums.bounded(people[chosen[group]], tracker)
                lows[chosen[group]], highs[chosen[group]] = totals.lows, totals.highs
        return Totals(lows[rows], highs[rows])

    def exact(self, row: int) -> ExactTotals | None:
        """Return the sums of one person; None if they cannot be computed."""
        sums = self._of(self.crowd.models[row])
        return sums.exact(self.crowd.people[row : row + 1], BudgetTracker(UNLIMITED))

    def _of(self, model: Model) -> MeanSums:
        return MeanSums(model, self.vote, self.weights)
