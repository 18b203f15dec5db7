"""Answers of the user's model: as it gave them, and after they were repeated."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from feta.arrays import Counts, Matrix, Vector
from feta.rounding import AGREEMENT
from feta.scorer.protocol import Doubt


@dataclass(frozen=True, slots=True, eq=False)
class RawAnswers:
    """One row of numbers per person, as the model answered."""

    values: Matrix  # (people, answers); 0 where there is a problem
    problems: Mapping[int, str] = field(default_factory=dict)  # by row: why nothing is valid
    rounding: float = AGREEMENT  # answers that differ by less, relatively, differ by rounding

    def __len__(self) -> int:
        return len(self.values)

    @classmethod
    def none(cls, n_people: int, n_answers: int, problem: str) -> "RawAnswers":
        """Return no answers, all for the same reason."""
        return cls(np.zeros((n_people, n_answers)), dict.fromkeys(range(n_people), problem))

    def rows(self, chosen: Counts) -> "RawAnswers":
        """Return some rows, in this order."""
        problems = {
            place: self.problems[row]
            for place, row in enumerate(chosen.tolist())
            if row in self.problems
        }
        return RawAnswers(self.values[chosen], problems, self.rounding)


def joined(parts: list[RawAnswers]) -> RawAnswers:
    """Return the answers of several batches as one."""
    problems: dict[int, str] = {}
    start = 0
    for part in parts:
        problems |= {start + row: problem for row, problem in part.problems.items()}
        start += len(part)
    values = np.concatenate([part.values for part in parts])
    return RawAnswers(values, problems, max(part.rounding for part in parts))


class InvalidAnswers(Exception):
    """Answers to a batch that belong to no row, such as too few of them."""


class AskModel(Protocol):
    """The user's model as a function of encoded people."""

    @property
    def n_answers(self) -> int:
        """The number of numbers that it answers for a person."""
        ...

    @property
    def columns(self) -> Counts:
        """The encoded columns that reach the model; rows equal in these are the same row."""
        ...

    def __call__(self, people: Matrix) -> RawAnswers:
        """Evaluate people in one call of the model; it may raise anything."""
        ...

    def show(self, values: Vector) -> str:
        """Return the answer to one person, for messages."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """Answers with error bounds: 0 where all evaluations agreed, infinite where none is valid."""

    values: Matrix  # (people, answers)
    radii: Vector
    doubts: tuple[Doubt, ...] = ()
    complete: bool = True  # False: the budget was spent before all rows were evaluated

    def __len__(self) -> int:
        return len(self.values)

    @property
    def size(self) -> int:
        """The memory that the answers take, in bytes."""
        return int(self.values.nbytes + self.radii.nbytes)

    def rows(self, chosen: Counts) -> "Answers":
        """Return some rows, in this order."""
        return Answers(self.values[chosen], self.radii[chosen], self.doubts, self.complete)

    def and_repeated(self, other: "Answers") -> "Answers":
        """Return the same answers with the error bounds of two comparisons."""
        radii = np.maximum(self.radii, other.radii)
        doubts = self.doubts or other.doubts
        return Answers(self.values, radii, doubts, self.complete and other.complete)
