"""Segments: counterparts along one line, on which all scores are affine."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

# A box of counterparts: the first and the last index on each axis, both inclusive.
Box = list[tuple[int, int]]


@dataclass(frozen=True)
class Segment:
    """Counterparts, by their ids, with the scores start + step · offset."""

    ids: Sequence[int]
    start: Sequence[int]
    step: Sequence[int]
    offsets: Sequence[int]  # ascending, one per counterpart

    def at(self, offset: int) -> Sequence[int]:
        """Return the scores at an offset."""
        return [y + d * offset for y, d in zip(self.start, self.step, strict=True)]

    def points(self) -> Iterator[tuple[int, Sequence[int]]]:
        """Yield id and scores of each counterpart."""
        return zip(self.ids, map(self.at, self.offsets), strict=True)
