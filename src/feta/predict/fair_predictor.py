"""FairPredictor: a person's counterparts decide together; individually fair by construction.

It is a pure function of the model and the columns that are not sensitive (S4): the sensitive ones
are never read, so nobody's decision can hang on them.
"""

from dataclasses import dataclass, replace

import numpy as np

from feta.arrays import Answers, Counts, Matrix
from feta.engine.lattice import Lattice
from feta.engine.protocol import UNLIMITED, Budget
from feta.engine.registry import choose
from feta.errors import DomainError, EngineError, Undecided
from feta.model import Model
from feta.rule import Argmax, Tolerance
from feta.space.vote_weights import VoteWeights
from feta.verdict.spread import Spread
from feta.verdict.tally import Tally
from feta.verdict.verdict import Reason


@dataclass(frozen=True, slots=True)
class FairPredictor:
    """Decides as most counterparts would be decided; an exact tie is favorable.

    Several classes: the class most counterparts get, the first on a tie. Regression: the lower
    median of their scores. With `weights`, each counterpart has its votes.
    """

    model: Model
    engine: str = "auto"
    budget: Budget = UNLIMITED
    weights: VoteWeights | None = None

    def __post_init__(self) -> None:
        if self.weights is not None:
            self.weights.check(self.model.space)

    def decide(self, people: Matrix) -> Answers:
        """Decide each person; rows that cannot be settled raise `Undecided`, never a guess."""
        quick = self._quickly(people)
        if quick is not None:
            return quick
        counts = (
            self.medians(people) if isinstance(self.model.rule, Tolerance) else self.votes(people)
        )
        open_rows = np.flatnonzero(~counts.settled)
        if open_rows.size:
            reason = Reason.OUT_OF_TIME if self.budget.seconds is not None else Reason.OUT_OF_NODES
            raise Undecided(tuple(open_rows.tolist()), reason)
        if isinstance(counts, Spread):
            return counts.median
        return counts.winner if isinstance(self.model.rule, Argmax) else counts.decision

    def _quickly(self, people: Matrix) -> Answers | None:
        """Take the shortest way, in compiled code, where it is open."""
        if self.weights is not None or self.budget is not UNLIMITED:
            return None
        if type(people) is not np.ndarray or people.dtype != np.float64:
            return None
        engine = choose(self.model, self.engine)
        return engine.majority(self.model, people) if isinstance(engine, Lattice) else None

    def votes(self, people: Matrix) -> Tally:
        """Count until each majority is certain; rows that were not settled in time say so."""
        if isinstance(self.model.rule, Tolerance):
            raise EngineError("a regression model has scores, not votes; use medians")
        first, inverse = self._distinct(people)
        counts = choose(self.model, self.engine).tally(
            self.model, first, self.budget, until="majority", weights=self.weights
        )
        return replace(
            counts,
            by_class=counts.by_class[inverse],
            undecided=counts.undecided[inverse],
            safe=counts.safe[inverse],
        )

    def medians(self, people: Matrix) -> Spread:
        """Find the median of each person's counterparts; regression only."""
        if not isinstance(self.model.rule, Tolerance):
            raise EngineError("medians are for regression, with a Tolerance; use votes")
        first, inverse = self._distinct(people)
        found = choose(self.model, self.engine).spread(
            self.model, first, self.budget, weights=self.weights
        )
        return Spread(
            found.median[inverse],
            found.lowest[inverse],
            found.highest[inverse],
            found.settled[inverse],
        )

    def _distinct(self, people: Matrix) -> tuple[Matrix, Counts]:
        """Equal non-sensitive parts have the same counterparts; they are asked about once."""
        given: object = people
        if not isinstance(given, np.ndarray | list):
            message = f"people must come encoded: space.encode(table, sensitive='ignore') does it; got {type(people).__name__}"
            raise DomainError(message)
        people = np.asarray(people, dtype=np.float64)
        self.model.space.check(people, sensitive="ignore")
        # Rows are told apart by their bytes; + 0.0 makes −0.0 the 0.0 that it equals.
        content = (people[:, ~self.model.space.sensitive_columns] + 0.0).tobytes()
        size = len(content) // max(1, len(people))
        seen: dict[bytes, int] = {}
        first: list[int] = []
        inverse = np.zeros(len(people), dtype=np.int64)
        for row in range(len(people)):
            place = seen.setdefault(content[row * size : (row + 1) * size], len(seen))
            if place == len(first):
                first.append(row)
            inverse[row] = place
        return people[first], inverse
