"""Segments: counterparts along one line, on which all scores are affine."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

# A box of counterparts: the first and the last index on each axis, both inclusive.
Box = list[tuple[int, int]]
Number = int | Fraction


@dataclass(frozen=True)
class Segment:
    """Counterparts, by their ids, with the scores start + step · offset."""

    ids: Sequence[int]
    start: Sequence[int]
    step: Sequence[int] = ()
    offsets: Sequence[int] = (0,)

    def at(self, offset: int) -> Sequence[int]:
        """Return the scores at an offset."""
        if not self.step or not offset:
            return self.start
        return [y + d * offset for y, d in zip(self.start, self.step, strict=True)]

    @property
    def ends(self) -> tuple[Sequence[int], Sequence[int]]:
        """The scores at both ends, between which all others lie."""
        return self.at(self.offsets[0]), self.at(self.offsets[-1])

    def points(self) -> Iterator[tuple[int, Sequence[int]]]:
        """Yield id and scores of each counterpart."""
        if len(self.offsets) == len(self.ids):
            yield from zip(self.ids, map(self.at, self.offsets), strict=True)
        else:  # all have the same scores
            for number in self.ids:
                yield number, self.start


class Restricted(Protocol):
    """A scorer on the counterparts of one person; scores are integers times one unit."""

    unit: Fraction
    denominator: int  # by which stated scores are not yet divided

    def scores(self, values: list[int]) -> list[int]:
        """Compute the scores of one counterpart."""
        ...

    def segments(self, box: Box) -> Iterator[Segment]:
        """Yield segments that together contain every counterpart of a box, each of them once."""
        ...

    def minimum(self, box: Box, row: Sequence[int]) -> Number:
        """Bound a linear function of the scores over a box from below."""
        ...


class Scorer(Protocol):
    """An exact function of an encoded person."""

    outputs: int

    def restrict(self, row: list[Fraction]) -> Restricted:
        """Fix the columns of a person that counterparts share."""
        ...
