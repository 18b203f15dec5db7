"""The people to whom votes are fitted, and the sums over their counterparts."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from feta.arrays import Counts, Matrix
from feta.engine.budget_tracker import BudgetTracker
from feta.engine.counterparts import assignments
from feta.engine.means import MeanSums
from feta.engine.protocol import UNLIMITED
from feta.errors import SchemaError
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
    favorable: Counts  # how many of them are favorable, as the model decides them

    @classmethod
    def of(cls, model: Model, people: Matrix) -> "Crowd":
        """Sort people and deduplicate them by their keys."""
        rows, counts = np.unique(people + 0.0, axis=0, return_counts=True)
        index: dict[bytes, int] = {}
        inverse = [index.setdefault(key, len(index)) for key in model.relation.keys(rows)]
        first = np.unique(inverse, return_index=True)[1]
        numbers = np.bincount(inverse, weights=counts).astype(np.int64)
        favorable = np.zeros(len(first))
        for part_model, part in groups(model, rows):
            chosen = part[part_model.decide(rows[part])]
            np.add.at(favorable, np.array(inverse)[chosen], counts[chosen])
        return cls(model, rows[first], numbers, favorable.astype(np.int64))

    def voted(self, weights: VoteWeights | None) -> "Crowd":
        """Return the people whose counterparts have votes; others have no mean."""
        if self.model.relation.complete:
            return self
        sizes = [assignments(self.model, person[None, :], weights).size for person in self.people]
        rows = np.flatnonzero(sizes)
        if not len(rows):
            raise SchemaError(
                "no level: got no people whose counterparts have votes; expected other people, or "
                "weights with more assignments"
            )
        return Crowd(self.model, self.people[rows], self.numbers[rows], self.favorable[rows])

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
    """Sums over the counterparts of a crowd; `scale` times the mean of each.

    If people have different numbers of votes, the sums are means, and `scale` is 1.
    """

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
        return int(self._scales[0]) if self._divisors is None else 1

    @cached_property
    def _scales(self) -> Counts:
        """The number by which the sum of each person is divided."""
        people, sums = self.crowd.people, self._of(self.crowd.model)
        if self.crowd.model.relation.complete:
            return np.array([sums.scale(people[:1])], dtype=np.int64)
        return np.array([sums.scale(person[None, :]) for person in people], dtype=np.int64)

    @cached_property
    def _divisors(self) -> Counts | None:
        """The scales if they differ."""
        return self._scales if (self._scales != self._scales[0]).any() else None

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
            for group in sums.groups(people[chosen]):
                totals = sums.bounded(people[chosen[group]], tracker)
                lows[chosen[group]], highs[chosen[group]] = totals.lows, totals.highs
        if self._divisors is None:
            return Totals(lows[rows], highs[rows])
        divisors = self._divisors[rows, None]
        lows, highs = lows[rows] / divisors, highs[rows] / divisors
        return Totals(np.nextafter(lows, -np.inf), np.nextafter(highs, np.inf))

    def exact(self, row: int) -> ExactTotals | None:
        """Return the sums of one person; None if they cannot be computed."""
        sums = self._of(self.crowd.models[row])
        totals = sums.exact(self.crowd.people[row : row + 1], BudgetTracker(UNLIMITED))
        if totals is None or self._divisors is None:
            return totals
        return tuple(total / int(self._divisors[row]) for total in totals)

    def _of(self, model: Model) -> MeanSums:
        return MeanSums(model, self.vote, self.weights)
