"""Tests of inner nodes: which of the numbers that a library reads go left."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from feta.arrays import Counts, Flags, Vector


class Split(Protocol):
    """The test of one node; NaN means missing."""

    def goes_left(self, numbers: Vector) -> Flags:
        """Flag the numbers that go left."""
        ...


@dataclass(frozen=True, slots=True)
class Bands:
    """A test of a number by the band in which it lies.

    Band i contains the numbers above edge i − 1, up to and including edge i. A plain threshold is
    one edge, with the lower band on the left.
    """

    edges: tuple[float, ...]  # ascending
    left: tuple[bool, ...]  # per band: one more than edges
    missing_left: bool

    @classmethod
    def cut(cls, cut: float, *, missing_left: bool) -> "Bands":
        """Return the test whether a number is at most the cut."""
        return cls((cut,), (True, False), missing_left)

    def goes_left(self, numbers: Vector) -> Flags:
        """Flag the numbers that go left."""
        bands = np.searchsorted(np.array(self.edges), numbers)
        left = np.array(self.left)[bands]
        return np.where(np.isnan(numbers), self.missing_left, left)

    def joined(self) -> "Bands":
        """Return the same test without edges between bands of the same side; one edge or more."""
        edges: list[float] = []
        left = [self.left[0]]
        for edge, side in zip(self.edges, self.left[1:], strict=True):
            if side != left[-1]:
                edges.append(edge)
                left.append(side)
        if not edges:  # an edge that no number exceeds, because missing ones may go elsewhere
            return Bands((np.inf,), (left[0], not left[0]), self.missing_left)
        return Bands(tuple(edges), tuple(left), self.missing_left)


@dataclass(frozen=True, slots=True, eq=False)
class Codes:
    """A test of a category by its code."""

    listed: Counts
    listed_left: bool  # where the listed codes go; all others go to the other side
    missing_left: bool

    def goes_left(self, numbers: Vector) -> Flags:
        """Flag the codes that go left."""
        left = np.isin(numbers, self.listed) == self.listed_left
        return np.where(np.isnan(numbers), self.missing_left, left)
