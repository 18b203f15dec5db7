"""Certificate: why a person is treated fairly, in a form that can be checked again."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LatticeProof:
    """Every counterpart was scored, and all were treated alike."""

    counterparts: int


Proof = LatticeProof


@dataclass(frozen=True, slots=True)
class Certificate:
    """A proof, the question it answers and the engine that found it."""

    query_digest: str
    engine: str
    proof: Proof
