"""Certificates: proofs of fairness that the checker can re-check."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from feta.arrays import Counts
from feta.scorer.protocol import Provenance

# A split of a cell: the axis, and where along it.
Cut = tuple[int, float]


@dataclass(frozen=True, slots=True)
class LatticeProof:
    """Proof by enumeration: every counterpart was scored and got the same decision."""

    counterparts: int


@dataclass(frozen=True, slots=True)
class BoundsProof:
    """Proof by bounds: the counterparts were split into cells, and each cell was proved fair.

    `cuts` lists the nodes of the tree of cells depth first: (axis, at) splits a cell in two,
    None marks a leaf. Regression: every score lies within half the tolerance of the `center`.
    """

    cuts: tuple[Cut | None, ...]
    center: Fraction | None = None


Proof = LatticeProof | BoundsProof


@dataclass(frozen=True, slots=True)
class Certificate:
    """A proof, the digest of the query it belongs to, and the engine that found it.

    `provenance` is "counted" if the model itself evaluated every counterpart: the certificate
    records that, and only the model can repeat it.
    """

    query_digest: str
    engine: str
    proof: Proof
    provenance: Provenance = "proved"


class CutTree:
    """Tree of cuts under construction; its leaves are cells that cover all counterparts."""

    def __init__(self) -> None:
        self._cuts: list[Cut | None] = [None]
        self._first_children: dict[int, int] = {}  # the second child is the next node

    def __len__(self) -> int:
        return len(self._cuts)

    def cut(self, node: int, axis: int, at: float) -> Counts:
        """Record that the cell of a leaf was split; return the two new nodes."""
        self._cuts[node] = axis, at
        self._first_children[node] = len(self)
        self._cuts += [None, None]
        return np.arange(len(self) - 2, len(self))

    def proof(self) -> BoundsProof:
        """Return the cuts in depth-first order."""
        cuts, stack = [], [0]
        while stack:
            node = stack.pop()
            cuts.append(self._cuts[node])
            if node in self._first_children:
                first = self._first_children[node]
                stack += [first + 1, first]
        return BoundsProof(tuple(cuts))
