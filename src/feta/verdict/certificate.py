"""Certificate: why a person is treated fairly, in a form that can be checked again."""

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class LatticeProof:
    """Every counterpart was scored, and all were treated alike."""

    counterparts: int


@dataclass(frozen=True, slots=True)
class BoundsProof:
    """All counterparts were cut in parts, and bounds rounded outward settled every one.

    `cuts` tells the parts by how they were made, depth first: (dimension, at) cuts a part in two, None
    leaves it whole. Regression: every score lies within half the tolerance of the `center`.
    """

    cuts: tuple[tuple[int, float] | None, ...]
    center: Fraction | None = None


Proof = LatticeProof | BoundsProof


@dataclass(frozen=True, slots=True)
class Certificate:
    """A proof, the question it answers and the engine that found it."""

    query_digest: str
    engine: str
    proof: Proof
