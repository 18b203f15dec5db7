"""Repeated evaluation: equal answers, answers that differ by rounding, and different answers."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from feta.arrays import Counts, Flags, Matrix, Vector
from feta.scorer.counted.answers import Answers, RawAnswers
from feta.scorer.counted.calls import NOT_EVALUATED
from feta.scorer.protocol import Doubt

# Doubts that are described per evaluation; the others have the same consequences.
MAX_DOUBTS = 4


@dataclass(frozen=True, slots=True, eq=False)
class Repetition:
    """The answers to the same rows, twice; `order` are the rows of the second time."""

    people: Matrix
    first: RawAnswers
    second: RawAnswers
    order: Counts
    describe: Callable[[Vector], str]
    rounding: float | None = None
    show: Callable[[Vector], str] = str  # an answer, for messages

    def answers(self, *, together: bool) -> Answers:
        """Return the answers of the first time with error bounds.

        Different answers leave the row undecided. With `together`, the rows are the counterparts
        of one person: all of them are undecided then. Among the rows of a random model, some
        repeat their answers by chance, and a comparison of these proves nothing.

        If answers differ by rounding only, every row gets the bound on rounding, because the
        others might round differently in a third batch.
        """
        different, rounded = self._differences()
        radii = np.zeros(len(self.people))
        if rounded.any():
            radii = self._tolerance * (1 + np.abs(self.first.values).max(axis=1))
        radii[list(self.first.problems)] = np.inf
        if different.any():
            radii[slice(None) if together else different] = np.inf
        radii[self._unrepeated] = np.inf
        complete = NOT_EVALUATED not in self._problems
        return Answers(self.first.values, radii, self._doubts(different), complete)

    @property
    def _unrepeated(self) -> Counts:
        """The rows for whose repetition the budget was not enough; one answer decides nothing."""
        places = [row for row, problem in self.second.problems.items() if problem == NOT_EVALUATED]
        return self.order[np.array(places, dtype=np.int64)]

    @property
    def _tolerance(self) -> float:
        if self.rounding is not None:
            return self.rounding
        return max(self.first.rounding, self.second.rounding)

    @property
    def _problems(self) -> set[str]:
        return {*self.first.problems.values(), *self.second.problems.values()}

    def _differences(self) -> tuple[Flags, Flags]:
        """Return which rows got different answers, and which differ by rounding only."""
        before, after = self.first.values[self.order], self.second.values
        with np.errstate(over="ignore"):  # an infinite distance is a difference
            distance = np.abs(after - before).max(axis=1, initial=0.0)
            size = np.maximum(np.abs(before), np.abs(after)).max(axis=1, initial=0.0)
        near = distance <= self._tolerance * (1 + size)
        for row, problem in self.second.problems.items():
            # A row that has a problem both times is undecided anyway, and not random.
            # A row that was not repeated is undecided as well.
            near[row] = problem == NOT_EVALUATED or int(self.order[row]) in self.first.problems
            distance[row] = 0.0
        valid = ~np.isin(self.order, list(self.first.problems))
        different, rounded = (np.zeros(len(self.people), dtype=bool) for _ in range(2))
        different[self.order[~near & valid]] = True
        rounded[self.order[near & valid & (distance > 0)]] = True
        return different, rounded

    def _doubts(self, different: Flags) -> tuple[Doubt, ...]:
        places = {row: place for place, row in enumerate(self.order.tolist())}
        doubts = [
            Doubt("nondeterministic", self.people[row], self._contradiction(row, places[row]))
            for row in np.flatnonzero(different)[:MAX_DOUBTS].tolist()
        ]
        unrepeated = dict.fromkeys(self._unrepeated.tolist(), NOT_EVALUATED)
        problems = {**unrepeated, **self.first.problems}
        for row, problem in list(problems.items())[:MAX_DOUBTS]:
            message = f"row ({self.describe(self.people[row])}): {problem}"
            spent = problem == NOT_EVALUATED
            doubts.append(Doubt("budget" if spent else "no answer", self.people[row], message))
        return tuple(doubts)

    def _contradiction(self, row: int, place: int) -> str:
        before = self.show(self.first.values[row])
        after = self.second.problems.get(place) or self.show(self.second.values[place])
        return (
            f"row ({self.describe(self.people[row])}): the model answered {before}, and then "
            f"{after} for the same row in another batch"
        )
