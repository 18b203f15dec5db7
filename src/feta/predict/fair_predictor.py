"""FairPredictor: a person's counterparts decide together; individually fair by construction.

It is a pure function of the model and the columns that are not sensitive (S4): the sensitive ones
are never read, so nobody's decision can hang on them.
"""

from copy import copy
from dataclasses import dataclass, replace

import numpy as np

from feta.arrays import Answers, Counts, Matrix
from feta.engine.lattice import LatticeEngine
from feta.engine.protocol import UNLIMITED, Budget
from feta.engine.registry import choose
from feta.errors import DomainError, EngineError, Undecided
from feta.model import Model
from feta.rule import Argmax, Tolerance
from feta.space.vote_weights import VoteWeights
from feta.verdict.spread import Spread
from feta.verdict.tally import Tally
from feta.verdict.verdict import Reason
from feta.wider_limits import groups, refusal, widest


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
        parts = groups(self.model, self._checked(people))
        if any(model is not self.model for model, _ in parts):
            return self._decide_parts(np.asarray(people, dtype=np.float64), parts)
        counts = (
            self.medians(people) if isinstance(self.model.rule, Tolerance) else self.votes(people)
        )
        open_rows = np.flatnonzero(~counts.decided)
        if open_rows.size:
            raise Undecided(tuple(open_rows.tolist()), self._why_open())
        if isinstance(counts, Spread):
            return counts.median
        return counts.winner if isinstance(self.model.rule, Argmax) else counts.decision

    def _decide_parts(self, people: Matrix, parts: list[tuple[Model, Counts]]) -> Answers:
        """Decide people inside the limits and outside of them separately."""
        answers: dict[int, object] = {}
        open_rows: list[int] = []
        for model, rows in parts:
            try:
                decided = self._over(model).decide(people[rows])
                answers.update(zip(rows.tolist(), decided, strict=True))
            except Undecided as error:
                open_rows += rows[list(error.rows)].tolist()
        if open_rows:
            raise Undecided(tuple(sorted(open_rows)), self._why_open())
        return np.array([answers[row] for row in range(len(people))])

    def _over(self, model: Model) -> "FairPredictor":
        """Take the same predictor over wider limits; the votes are those of the same counterparts."""
        made = copy(self)
        object.__setattr__(made, "model", model)
        return made

    def admit(self, people: Matrix) -> None:
        """Raise `OutsideLimits` unless everybody outside the limits can be decided.

        The rows must be readable, as `space.encode(..., limits="open")` makes them.
        """
        for model, rows in groups(self.model, people):
            if model is self.model:
                continue
            try:
                choose(model, self.engine)
            except EngineError as error:
                row = int(rows[0])
                column = widest(self.model, people, row)
                raise refusal(self.model, people, row, column=column, reason=str(error)) from None

    def _quickly(self, people: Matrix) -> Answers | None:
        """Take the shortest way, in compiled code, where it is open."""
        if self.weights is not None or self.budget is not UNLIMITED:
            return None
        if type(people) is not np.ndarray or people.dtype != np.float64:
            return None
        engine = choose(self.model, self.engine)
        return engine.majority(self.model, people) if isinstance(engine, LatticeEngine) else None

    def _why_open(self) -> Reason:
        if self.budget == UNLIMITED:
            return Reason.NOT_WITNESSED
        return Reason.OUT_OF_TIME if self.budget.seconds is not None else Reason.OUT_OF_NODES

    def votes(self, people: Matrix) -> Tally:
        """Count until each majority is certain; rows that were not settled in time say so."""
        if isinstance(self.model.rule, Tolerance):
            raise EngineError("a regression model has scores, not votes; use medians")
        first, inverse = self._distinct(people)
        parts = groups(self.model, first)
        counts = Tally.joined(
            [
                choose(model, self.engine).tally(
                    model,
                    first[rows],
                    self._share(len(rows), len(first)),
                    until="majority",
                    weights=self.weights,
                )
                for model, rows in parts
            ]
        )
        inverse = _places(parts)[inverse]
        return replace(
            counts,
            by_class=counts.by_class[inverse],
            undecided=counts.undecided[inverse],
            runtime_safe=counts.runtime_safe[inverse],
        )

    def medians(self, people: Matrix) -> Spread:
        """Find the median of each person's counterparts; regression only."""
        if not isinstance(self.model.rule, Tolerance):
            raise EngineError("medians are for regression, with a Tolerance; use votes")
        first, inverse = self._distinct(people)
        parts = groups(self.model, first)
        found = [
            choose(model, self.engine).spread(
                model, first[rows], self._share(len(rows), len(first)), weights=self.weights
            )
            for model, rows in parts
        ]
        inverse = _places(parts)[inverse]
        return Spread(
            *(
                np.concatenate([getattr(one, name) for one in found])[inverse]
                for name in ("median", "lowest", "highest", "decided")
            )
        )

    def _share(self, n_people: int, n_all: int) -> Budget:
        """Give some of the people their share of the time."""
        seconds = self.budget.seconds
        if seconds is None or n_people == n_all:
            return self.budget
        return replace(self.budget, seconds=seconds * n_people / n_all)

    def _distinct(self, people: Matrix) -> tuple[Matrix, Counts]:
        """Equal non-sensitive parts have the same counterparts; they are asked about once."""
        people = self._checked(people)
        # Rows are told apart by their bytes; + 0.0 makes −0.0 the 0.0 that it equals.
        content = (people[:, ~self.model.space.sensitive_columns] + 0.0).tobytes()
        size = len(content) // max(1, len(people))
        seen: dict[bytes, int] = {}
        first: list[int] = []
        inverse = np.zeros(len(people), dtype=np.int64)
        for row in range(len(people)):
            index = seen.setdefault(content[row * size : (row + 1) * size], len(seen))
            if index == len(first):
                first.append(row)
            inverse[row] = index
        return people[first], inverse

    def _checked(self, people: Matrix) -> Matrix:
        """Take rows that are people of the space, inside the limits of shared columns or beyond."""
        given: object = people
        if not isinstance(given, np.ndarray | list):
            message = f"people must come encoded: space.encode(table, sensitive='ignore') does it; got {type(people).__name__}"
            raise DomainError(message)
        people = np.asarray(people, dtype=np.float64)
        self.model.space.check(people, sensitive="ignore", limits="open")
        return people


def _places(parts: list[tuple[Model, Counts]]) -> Counts:
    """Tell where each person's answer stands when those of the groups follow each other."""
    return np.argsort(np.concatenate([rows for _, rows in parts]))
