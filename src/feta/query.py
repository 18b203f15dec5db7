"""Queries about one person. A query is a value: it can be hashed, logged and sent."""

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from feta.arrays import Vector, frozen
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


Query = FairAt | WorstAt
