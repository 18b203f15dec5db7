"""The engine `branch` for networks with a threshold: boxes of people, half-spaces, exact people."""

from fractions import Fraction
from typing import ClassVar

import numpy as np

from feta.arrays import Matrix, Vector
from feta.everybody.decide import treated
from feta.everybody.half_spaces import native
from feta.everybody.half_spaces.examine import FEW
from feta.everybody.half_spaces.problem import Problem
from feta.everybody.half_spaces.search import ReferenceSearch, Search
from feta.everybody.half_spaces.tree import cuts_of
from feta.everybody.population import Independent
from feta.everybody.shares import Stratum, strata
from feta.model import Model
from feta.verdict.certificate import Cut

# Seconds of one step.
STEP_SECONDS = 0.1


class HalfSpaces:
    """A proof about a population that grows step by step."""

    name: ClassVar[str] = "branch"

    def __init__(
        self, model: Model, parts: list[Stratum], problems: list[Problem], *, few: int
    ) -> None:
        self.model, self.parts, self.problems = model, parts, problems
        self.witness: Vector | None = None  # somebody who is treated unfairly
        self._few = few
        self._searches: list[Search] = []

    @classmethod
    def of(cls, model: Model, population: Independent, *, few: int = FEW) -> "HalfSpaces | str":
        """Return the proof for a population, or why there is none."""
        parts = strata(population)
        if isinstance(parts, str):
            return parts
        problems: list[Problem] = []
        for part in parts:
            problem = Problem.of(model, part)
            if isinstance(problem, str):
                return problem
            problems.append(problem)
        return cls(model, parts, problems, few=few)

    @property
    def searches(self) -> list[Search]:
        """One search per part of the population; empty before the first step."""
        return self._searches

    @property
    def fair(self) -> Fraction:
        """The share that is proved to be treated fairly."""
        return self._sum([search.fair for search in self._searches])

    @property
    def unfair(self) -> Fraction:
        """The share that is proved to be treated unfairly."""
        return self._sum([search.unfair for search in self._searches])

    @property
    def done(self) -> bool:
        """Whether no box can be decided any more."""
        return bool(self._searches) and all(search.done for search in self._searches)

    @property
    def n_boxes(self) -> int:
        """The number of boxes that were examined."""
        return sum(search.n_boxes for search in self._searches)

    def step(self, seconds: float = STEP_SECONDS) -> None:
        """Work on the part with the most undecided people."""
        if not self._searches:
            self._searches = [self._search(index) for index in range(len(self.parts))]
            for index in range(len(self.parts)):
                self._look(index)
            return
        undecided = [
            Fraction(-1) if search.done else part.share * (1 - search.fair - search.unfair)
            for part, search in zip(self.parts, self._searches, strict=True)
        ]
        index = undecided.index(max(undecided))
        self._searches[index].step(seconds)
        self._look(index)

    def _look(self, index: int) -> None:
        """Keep somebody from a box in which everybody is treated unfairly."""
        if self.witness is None:
            found = self._searches[index].witness()
            if found is not None:
                part = self.parts[index]
                low, high = self._ends(part, *found)
                self.witness = part.member(low, high)

    def _ends(self, part: Stratum, lower: Vector, upper: Vector) -> tuple[Vector, Vector]:
        """Return the coordinates of all axes of a box, the sensitive ones included."""
        low, high = part.lower.copy(), part.upper.copy()
        low[list(part.shared)], high[list(part.shared)] = lower, upper
        return low, high

    def cuts(self) -> tuple[Cut | None, ...]:
        """Return the cuts of all boxes, depth first, one tree per part of the population."""
        cuts: list[Cut | None] = []
        for part, problem, search in zip(self.parts, self.problems, self._searches, strict=False):
            for axis, at in cuts_of(problem, search.tree()):
                cuts.append(None if at is None else (part.shared[axis], at))
        return tuple(cuts)

    def draw(self, rng: np.random.Generator, n_people: int) -> Matrix:
        """Draw people from undecided boxes, to look for counterexamples there."""
        rows = []
        for part, search in zip(self.parts, self._searches, strict=True):
            lower, upper = search.draw(rng, n_people)
            for low, high in zip(lower, upper, strict=True):
                coordinates = np.array([axis.ends[0] for axis in part.axes])
                for index, start, end in zip(part.shared, low, high, strict=True):
                    coordinates[index] = part.draw(rng, index, start, end)
                rows.append(part.at(coordinates[None, :])[0])
        return np.stack(rows) if rows else np.zeros((0, self.model.space.width))

    def _search(self, index: int) -> Search:
        def decide(lower: Vector, upper: Vector) -> tuple[Fraction, Fraction]:
            return self._decide(self.parts[index], lower, upper)

        if native.native is None:
            return ReferenceSearch(self.problems[index], decide, few=self._few)
        return native.NativeSearch(self.problems[index], decide, few=self._few)

    def _sum(self, shares: list[Fraction]) -> Fraction:
        each = zip(self.parts, shares, strict=False)
        return sum((part.share * share for part, share in each), start=Fraction(0))

    def _decide(self, part: Stratum, lower: Vector, upper: Vector) -> tuple[Fraction, Fraction]:
        """Decide the people of a small box exactly; return the shares of fair and unfair ones."""
        listed = part.people(*self._ends(part, lower, upper), 2**16)
        assert listed is not None  # the box is small
        people, shares = listed
        result = treated(self.model, people)
        total = sum(shares, start=Fraction(0))
        fair = sum((s for s, f in zip(shares, result.fair, strict=True) if f), start=Fraction(0))
        unfair = sum(
            (s for s, f in zip(shares, result.unfair, strict=True) if f), start=Fraction(0)
        )
        if self.witness is None and result.unfair.any():
            self.witness = people[int(np.argmax(result.unfair))]
        return fair / total, unfair / total
