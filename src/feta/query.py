"""Queries: what an engine is asked. A query is a value: it can be hashed, logged and sent."""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from feta.arrays import Matrix, Vector, frozen
from feta.errors import DomainError
from feta.model import Model


@dataclass(frozen=True, eq=False)
class FairAt:
    """Does this person get the same decision for all values of the sensitive attributes?

    Regression: do the scores of any two counterparts differ by the tolerance at most?
    """

    model: Model
    person: Vector

    def __post_init__(self) -> None:
        person: object = self.person
        if isinstance(person, dict):
            raise DomainError(
                "invalid person: got a dict; expected an encoded row; use space.encode(record)[0]"
            )
        object.__setattr__(self, "person", frozen(self.person))
        if self.person.ndim != 1:
            raise DomainError(
                f"invalid person: got the shape {self.person.shape}; expected one row; a query is "
                "about one person"
            )
        self.model.space.check(self.person[None, :])

    @classmethod
    def each(cls, model: Model, people: Matrix) -> list[Self]:
        """Return one query per row; all rows are checked at once."""
        people = frozen(people)
        model.space.check(people)
        queries = []
        for person in people:
            query = object.__new__(cls)
            object.__setattr__(query, "model", model)
            object.__setattr__(query, "person", person)
            queries.append(query)
        return queries

    @cached_property
    def digest(self) -> str:
        """A sha256 of query type, model and person."""
        text = f"{type(self).__name__}\n{self.model.fingerprint}\n"
        person = self.person.astype(np.dtype("<f8"))
        return hashlib.sha256(text.encode() + person.tobytes()).hexdigest()


@dataclass(frozen=True, eq=False)
class WorstAt(FairAt):
    """Which counterpart of this person has the largest gap?

    Regression: which two counterparts have the lowest and the highest score?
    """


PersonQuery = FairAt | WorstAt


@dataclass(frozen=True, eq=False)
class FairEverywhere:
    """Is everybody whom the space allows treated fairly, or everybody who meets a condition?

    The condition reads columns that counterparts share, for example "age >= 18".
    """

    model: Model
    where: str | None = None

    @cached_property
    def digest(self) -> str:
        """A sha256 of query type, model and condition."""
        text = f"{type(self).__name__}\n{self.model.fingerprint}\n{self.where or ''}"
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True, eq=False)
class CountOf:
    """How many counterparts of each person get which decision?"""

    model: Model


@dataclass(frozen=True, slots=True, eq=False)
class SpreadOf:
    """What are the median, the lowest and the highest score of each person's counterparts?"""

    model: Model


@dataclass(frozen=True, slots=True, eq=False)
class MeanOf:
    """On which side of a cut-off is the mean of each person's counterparts?"""

    model: Model


Query = PersonQuery | CountOf | SpreadOf | MeanOf
