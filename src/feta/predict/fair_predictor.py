"""FairPredictor: the majority of a person's counterparts decides; individually fair by construction.

It is a pure function of the model and the columns that are not sensitive (S4): the sensitive ones
are never read, so nobody's decision can hang on them.
"""

from dataclasses import dataclass

import numpy as np

from feta.arrays import Flags, Matrix
from feta.engine.protocol import UNLIMITED, Budget
from feta.engine.registry import choose
from feta.errors import Undecided
from feta.model import Model
from feta.verdict.tally import Tally
from feta.verdict.verdict import Reason


@dataclass(frozen=True, slots=True)
class FairPredictor:
    """Decides as most counterparts would be decided; an exact tie is favorable."""

    model: Model
    engine: str = "auto"
    budget: Budget = UNLIMITED

    def decide(self, people: Matrix) -> Flags:
        """Decide each person; rows that cannot be settled raise `Undecided`, never a guess."""
        people = np.asarray(people, dtype=np.float64)
        self.model.space.check(people, sensitive="ignore")
        if not len(people):
            return np.zeros(0, dtype=bool)
        # Equal non-sensitive parts have the same counterparts; they are counted once.
        shared = people[:, ~self.model.space.sensitive_columns] + 0.0
        _, first, inverse = np.unique(shared, axis=0, return_index=True, return_inverse=True)
        counts = self._count(people[first])
        open_rows = np.flatnonzero(~counts.settled[inverse])
        if open_rows.size:
            raise Undecided(tuple(open_rows.tolist()), Reason.OUT_OF_TIME)
        return counts.decision[inverse]

    def _count(self, people: Matrix) -> Tally:
        engine = choose(self.model, self.engine)
        return engine.tally(self.model, people, self.budget, until="majority")
