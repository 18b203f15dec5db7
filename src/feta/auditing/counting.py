"""Counts and spreads of people who are known to be valid, with a budget per person."""

from dataclasses import dataclass, replace

import numpy as np

from feta.arrays import Matrix
from feta.engine.protocol import UNLIMITED, Budget
from feta.engine.registry import choose
from feta.model import Model
from feta.query import CountOf, SpreadOf
from feta.verdict.spread import Spread
from feta.verdict.tally import Tally


@dataclass(frozen=True, slots=True)
class Counting:
    """An engine by name, and the budget for each person."""

    engine: str
    budget: Budget

    def tally(self, model: Model, people: Matrix) -> Tally:
        """Count everybody's counterparts together, then the undecided people one by one.

        The budget is per person: the large lattice of one person must not use up the budget of
        the others.
        """
        engine, seconds = choose(CountOf(model), self.engine), self.budget.seconds
        together = Budget(seconds=None if seconds is None else seconds * len(people))
        counts = engine.tally(model, people, together, until="all")
        if len(people) == 1 or not counts.undecided.any():
            return counts
        by_class, undecided, runtime_safe = (
            counts.by_class.copy(),
            counts.undecided.copy(),
            counts.runtime_safe.copy(),
        )
        for row in np.flatnonzero(undecided):
            single = engine.tally(model, people[row : row + 1], self.budget, until="all")
            by_class[row], undecided[row], runtime_safe[row] = (
                single.by_class[0],
                single.undecided[0],
                single.runtime_safe[0],
            )
        return replace(counts, by_class=by_class, undecided=undecided, runtime_safe=runtime_safe)

    def spread(self, model: Model, people: Matrix) -> Spread:
        """Find median, lowest and highest score of the counterparts; equal keys are one person."""
        engine = choose(SpreadOf(model), self.engine)
        index_of: dict[bytes, int] = {}
        keys = model.relation.keys(people)
        inverse = [index_of.setdefault(key, len(index_of)) for key in keys]
        first = people[np.unique(inverse, return_index=True)[1]]
        spreads = [engine.spread(model, part, self.budget) for part in self.parts(first)]
        return Spread(
            *(
                np.concatenate([getattr(spread, name) for spread in spreads])[inverse]
                for name in ("median", "lowest", "highest", "decided")
            )
        )

    def parts(self, people: Matrix) -> list[Matrix]:
        """Split people into single rows if the budget is limited: it is a budget per person."""
        return [people] if self.budget == UNLIMITED else list(people[:, None, :])
