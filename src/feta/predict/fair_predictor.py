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
        counts = self.votes(people)
        open_rows = np.flatnonzero(~counts.settled)
        if open_rows.size:
            raise Undecided(tuple(open_rows.tolist()), Reason.OUT_OF_TIME)
        return counts.decision

    def votes(self, people: Matrix) -> Tally:
        """Count until each majority is certain; rows that were not settled in time say so."""
        people = np.asarray(people, dtype=np.float64)
        self.model.space.check(people, sensitive="ignore")
        # Equal non-sensitive parts have the same counterparts; they are counted once.
        shared = people[:, ~self.model.space.sensitive_columns] + 0.0
        _, first, inverse = np.unique(shared, axis=0, return_index=True, return_inverse=True)
        engine = choose(self.model, self.engine)
        counts = engine.tally(self.model, people[first], self.budget, until="majority")
        return Tally(counts.by_class[inverse], counts.undecided[inverse], counts.safe[inverse])
