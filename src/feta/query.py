"""Stage 4: what is asked. A query is a value: hash it, log it, send it."""

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from feta.arrays import Vector, frozen
from feta.errors import DomainError
from feta.model import Model


@dataclass(frozen=True, eq=False)
class FairAt:
    """Is this person decided the same, whatever their sensitive attributes were?

    Regression: do the scores of any two counterparts differ by the tolerance at most?
    """

    model: Model
    person: Vector

    def __post_init__(self) -> None:
        given: object = self.person
        if isinstance(given, dict):
            raise DomainError("a person must come encoded; write space.encode(record)[0]")
        object.__setattr__(self, "person", frozen(self.person))
        if self.person.ndim != 1:
            message = (
                f"a question is about one person, got the shape {self.person.shape}; take one row"
            )
            raise DomainError(message)
        self.model.space.check(self.person[None, :])

    @cached_property
    def digest(self) -> str:
        """A sha256 of question, model and person."""
        text = f"{type(self).__name__}\n{self.model.fingerprint}\n"
        person = self.person.astype(np.dtype("<f8"))
        return hashlib.sha256(text.encode() + person.tobytes()).hexdigest()


@dataclass(frozen=True, eq=False)
class WorstAt(FairAt):
    """Which counterpart of this person is farthest on the other side of the decision?

    Regression: which two counterparts have the lowest and the highest score?
    """


Query = FairAt | WorstAt
