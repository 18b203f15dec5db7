"""The fair predictor: a person's counterparts vote, so it is individually fair by construction.

Its decision is a pure function of the model and the columns that are not sensitive (S4). It never
reads the sensitive columns, so no decision can depend on them.
"""

from copy import copy
from dataclasses import dataclass, replace

import numpy as np

from feta.arrays import Answers, Counts, Matrix
from feta.engine.aggregate import aggregate
from feta.engine.protocol import UNLIMITED, Budget
from feta.engine.registry import choose
from feta.errors import DomainError, EngineError, SchemaError, Undecided
from feta.model import Model
from feta.query import CountOf
from feta.space.vote_weights import VoteWeights
from feta.verdict.aggregate import Aggregate
from feta.verdict.spread import Spread
from feta.verdict.tally import Tally
from feta.verdict.verdict import Reason
from feta.wider_limits import groups, refusal, widest

# A model, and the rows of the people that it decides.
Part = tuple[Model, Counts]


@dataclass(frozen=True, slots=True)
class FairPredictor:
    """A predictor that returns the decision most counterparts get; an exact tie is favorable.

    Several classes: the class that most counterparts get, the first on a tie. Regression: the
    lower median of their scores. With `weights`, each counterpart has its number of votes.
    """

    model: Model
    engine: str = "auto"
    budget: Budget = UNLIMITED
    weights: VoteWeights | None = None

    def __post_init__(self) -> None:
        if not self.model.relation.has_key:
            raise SchemaError(
                f"no fair decision exists: got the relation {self.model.relation!r}; expected a "
                "relation with a key, in which counterparts of counterparts are counterparts"
            )
        if self.weights is not None:
            self.weights.check(self.model.space)

    def decide(self, people: Matrix) -> Answers:
        """Decide each person; raise `Undecided` if some cannot be decided, never guess.

        Parameters
        ----------
        people
            Rows encoded by `space.encode(table, sensitive="ignore")`.

        Returns
        -------
        array
            True for favorable; several classes: the class indices; regression: the scores.
        """
        answers = self._decide_compiled(people)
        if answers is not None:
            return answers
        parts = groups(self.model, self._checked(people))
        if any(model is not self.model for model, _ in parts):
            return self._decide_parts(np.asarray(people, dtype=np.float64), parts)
        aggregate = self._aggregate(people)
        undecided = np.flatnonzero(~aggregate.decided)
        if undecided.size:
            raise Undecided(tuple(undecided.tolist()), self._reason())
        return aggregate.outcomes

    def _decide_parts(self, people: Matrix, parts: list[Part]) -> Answers:
        """Decide people inside and outside the limits separately."""
        answers: dict[int, object] = {}
        undecided: list[int] = []
        for model, rows in parts:
            try:
                decided = self._over(model).decide(people[rows])
                answers.update(zip(rows.tolist(), decided, strict=True))
            except Undecided as error:
                undecided += rows[list(error.rows)].tolist()
        if undecided:
            raise Undecided(tuple(sorted(undecided)), self._reason())
        return np.array([answers[row] for row in range(len(people))])

    def _over(self, model: Model) -> "FairPredictor":
        """Return the same predictor for a model with wider limits.

        The weights are not checked against that model's space: they belong to the declared one,
        and the counterparts are the same.
        """
        predictor = copy(self)
        object.__setattr__(predictor, "model", model)
        return predictor

    def admit(self, people: Matrix) -> None:
        """Raise `OutsideLimits` unless everybody outside the limits can be decided.

        The rows must be readable, as `space.encode(..., limits="open")` returns them.
        """
        for model, rows in groups(self.model, people):
            if model is self.model:
                continue
            try:
                choose(CountOf(model), self.engine)
            except EngineError as error:
                row = int(rows[0])
                column = widest(self.model, people, row)
                raise refusal(self.model, people, row, column=column, reason=str(error)) from None

    def _decide_compiled(self, people: Matrix) -> Answers | None:
        """Decide in compiled code alone, the fastest way; return None if it does not apply."""
        if self.weights is not None or self.budget is not UNLIMITED:
            return None
        if type(people) is not np.ndarray or people.dtype != np.float64:
            return None
        engine = choose(CountOf(self.model), self.engine)
        return engine.majority(self.model, people)

    def _reason(self) -> Reason:
        """Return why people remain undecided under this budget."""
        if self.budget == UNLIMITED:  # a solver misses witnesses; intervals contain ties
            solvable = self.model.restricted.bounds_cells
            return Reason.NOT_WITNESSED if solvable else Reason.NOT_SEPARABLE
        return Reason.OUT_OF_TIME if self.budget.seconds is not None else Reason.OUT_OF_NODES

    def votes(self, people: Matrix) -> Tally:
        """Count until each majority is certain; `decided` is False for rows out of time."""
        if self.model.rule.tolerance is not None:
            raise EngineError(
                "votes are for decisions: got a regression model; expected a threshold or classes; "
                "use medians"
            )
        tally = self._aggregate(people)
        assert isinstance(tally, Tally)
        return tally

    def medians(self, people: Matrix) -> Spread:
        """Find the median score of each person's counterparts; regression only."""
        if self.model.rule.tolerance is None:
            raise EngineError(
                "medians are for regression: got a model with decisions; expected a Tolerance; "
                "use votes"
            )
        spread = self._aggregate(people)
        assert isinstance(spread, Spread)
        return spread

    def _aggregate(self, people: Matrix) -> Aggregate:
        """Ask about each key once; people outside the limits are asked over wider limits."""
        first, inverse = self._distinct(people)
        parts = groups(self.model, first)
        aggregates = [
            aggregate(
                model,
                first[rows],
                self._share(len(rows), len(first)),
                engine=self.engine,
                weights=self.weights,
            )
            for model, rows in parts
        ]
        joined = aggregates[0]
        for more in aggregates[1:]:
            joined = joined.followed_by(more)
        return joined.rows(_indices_in_parts(parts)[inverse])

    def _share(self, n_people: int, n_all: int) -> Budget:
        """Return the budget with the time in proportion to the number of people."""
        seconds = self.budget.seconds
        if seconds is None or n_people == n_all:
            return self.budget
        return replace(self.budget, seconds=seconds * n_people / n_all)

    def _distinct(self, people: Matrix) -> tuple[Matrix, Counts]:
        """Deduplicate people with the same key: they have the same counterparts."""
        people = self._checked(people)
        seen: dict[bytes, int] = {}
        first: list[int] = []
        inverse = np.zeros(len(people), dtype=np.int64)
        for row, key in enumerate(self.model.relation.keys(people)):
            index = seen.setdefault(key, len(seen))
            if index == len(first):
                first.append(row)
            inverse[row] = index
        return people[first], inverse

    def _checked(self, people: Matrix) -> Matrix:
        """Return valid rows of the space; shared columns may be outside their limits."""
        rows: object = people
        if not isinstance(rows, np.ndarray | list):
            raise DomainError(
                f"people are not encoded: got {type(people).__name__}; expected an array of rows; "
                "use space.encode(table, sensitive='ignore')"
            )
        people = np.asarray(people, dtype=np.float64)
        self.model.space.check(people, sensitive="ignore", limits="open")
        return people


def _indices_in_parts(parts: list[Part]) -> Counts:
    """Return the index of each person in the concatenation of all parts."""
    return np.argsort(np.concatenate([rows for _, rows in parts]))
