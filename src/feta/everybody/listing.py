"""Populations of few people: everybody is decided, one by one."""

from fractions import Fraction
from math import prod
from typing import ClassVar

import numpy as np

from feta.arrays import Counts, Matrix, Vector
from feta.everybody.decide import treated
from feta.everybody.population import Independent, Listed, Population, Rows, with_derived
from feta.model import Model

# People who are listed, and decided at once.
MOST_PEOPLE = 2**17
BLOCK = 2**11


class Listing:
    """A proof by enumeration of a population, block by block."""

    name: ClassVar[str] = "enumeration"

    def __init__(self, model: Model, people: "_Table | _Grid") -> None:
        self.model, self.people = model, people
        self.fair = self.unfair = self.stuck = Fraction(0)
        self.witness: Vector | None = None
        self._next = 0

    @classmethod
    def of(cls, model: Model, population: Population) -> "Listing | str":
        """Return the proof for a population, or why there is none."""
        people = _people(model, population)
        if isinstance(people, str):
            return people
        if people.size > MOST_PEOPLE:
            return f"there are more than {MOST_PEOPLE:,} people to enumerate"
        return cls(model, people)

    @property
    def done(self) -> bool:
        """Whether everybody is decided."""
        return self._next >= self.people.size

    def step(self) -> None:
        """Decide the next people."""
        numbers = np.arange(self._next, min(self._next + BLOCK, self.people.size))
        people, weights = self.people.rows(numbers)
        self._next += len(numbers)
        result, total = treated(self.model, people), self.people.total
        self.fair += Fraction(sum(weights[row] for row in np.flatnonzero(result.fair)), total)
        self.unfair += Fraction(sum(weights[row] for row in np.flatnonzero(result.unfair)), total)
        self.stuck += Fraction(sum(weights[row] for row in np.flatnonzero(result.undecided)), total)
        if self.witness is None and result.unfair.any():
            self.witness = people[int(np.argmax(result.unfair))]

    def draw(self, rng: np.random.Generator, n_people: int) -> Matrix:
        """Draw nobody: all people are decided anyway."""
        del rng, n_people
        return np.zeros((0, self.model.space.width))


class _Table:
    """Different people of a table, and how many rows each has."""

    def __init__(self, people: Matrix, weights: list[int]) -> None:
        self._people, self._weights, self.total = people, weights, sum(weights)

    @property
    def size(self) -> int:
        """The number of different people."""
        return len(self._people)

    def rows(self, numbers: Counts) -> tuple[Matrix, list[int]]:
        """Return these people and their weights."""
        return self._people[numbers], [self._weights[number] for number in numbers]


class _Grid:
    """All combinations of values that have a weight; the sensitive columns have their first one."""

    def __init__(self, population: Independent, columns: list[Listed]) -> None:
        space = self._space = population.space
        self._columns: list[tuple[slice, Matrix, list[int]]] = []
        for column in columns:
            kept = [row for row, weight in enumerate(column.weights) if weight]
            weights = [column.weights[row] for row in kept]
            if space.is_sensitive(column.attribute):
                kept, weights = kept[:1], [1]
            self._columns.append((space.columns_of(column.attribute), column.codes[kept], weights))
        self.total = prod(sum(weights) for _, _, weights in self._columns)

    @property
    def size(self) -> int:
        """The number of different people; it may exceed what `len` can return."""
        return prod(len(weights) for _, _, weights in self._columns)

    def rows(self, numbers: Counts) -> tuple[Matrix, list[int]]:
        """Return these people and their weights."""
        people = np.zeros((len(numbers), self._space.width))
        weights = [1] * len(numbers)
        rest = numbers
        for columns, codes, each in self._columns:
            rest, chosen = np.divmod(rest, len(each))
            people[:, columns] = codes[chosen]
            weights = [weight * each[row] for weight, row in zip(weights, chosen, strict=True)]
        return with_derived(self._space, people), weights


def _people(model: Model, population: Population) -> "_Table | _Grid | str":
    if isinstance(population, Rows):
        people, weights = population.people, population.weights.tolist()
        if not model.relation.has_key:
            return _Table(people, weights)
        by_key: dict[bytes, int] = {}
        first: list[int] = []
        for row, key in enumerate(model.relation.keys(people)):
            if key not in by_key:
                by_key[key] = len(first)
                first.append(row)
        totals = [0] * len(first)
        for key, weight in zip(model.relation.keys(people), weights, strict=True):
            totals[by_key[key]] += weight
        return _Table(people[first], totals)
    assert isinstance(population, Independent)
    columns = [column for column in population.columns if isinstance(column, Listed)]
    if len(columns) < len(population.columns):
        return "a column is real-valued"
    if population.linked:
        return "the condition links several columns"
    return _Grid(population, columns)
