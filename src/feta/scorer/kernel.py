"""The protocols of kernels: compiled searches over one scorer's counterparts.

A kernel decides what its proved bounds and float64 scores decide. It returns the assignment ids of
the other counterparts, which the engine decides in exact arithmetic.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from feta.arrays import Answers, Counts, Flags, Matrix, Vector
from feta.scorer.protocol import Objective
from feta.space.vote_weights import VoteWeights

# How a kernel compares a point: by a threshold, by the largest score, by whether one class has the
# largest score, or by a band of scores.
Comparison = Literal["threshold", "argmax", "one_vs_rest", "band"]


@dataclass(frozen=True, slots=True)
class KernelRule:
    """A rule as kernels take it."""

    comparison: Comparison
    outputs: int
    classes: int  # at least 2; a band has an inside and an outside
    value: float = 0.0  # the threshold
    above: bool = True  # whether scores above the threshold are favorable
    chosen: int = 0  # the class of "one_vs_rest"
    ties_to_last: bool = True  # whether the last class wins a tied vote
    ties_favorable: bool = True  # whether a score on the threshold is favorable


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on the cost of a search."""

    seconds: float = -1.0  # until the deadline; negative for no limit
    evaluations: int = 0  # per person; 0 for no limit


@dataclass(frozen=True, slots=True, eq=False)
class KernelCounts:
    """Counts of counterparts by decision, one row per person."""

    by_class: Counts
    runtime_safe: Flags
    undecided: Mapping[int, Counts]  # assignment ids of undecided counterparts, by row


@dataclass(frozen=True, slots=True, eq=False)
class KernelSearch:
    """Results of a search, one row per person."""

    found: Flags
    assignment_ids: Counts  # of the counterpart that was found
    finished: Flags  # False: a limit was reached
    runtime_safe: Flags
    undecided: Mapping[int, Counts]  # assignment ids of undecided counterparts, by row
    cost: Counts  # evaluations

    def candidates(self, row: int) -> Counts:
        """Return the undecided counterparts in ascending order, or else the one found."""
        if row in self.undecided:
            return self.undecided[row]
        return self.assignment_ids[row : row + 1] if self.found[row] else self.assignment_ids[:0]


@dataclass(frozen=True, slots=True, eq=False)
class References:
    """What the counterparts of each person are compared with: a decision, or a band."""

    decisions: Counts
    centers: Vector
    half: float = 0.0  # half the width of the bands, rounded down


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class KernelVote:
    """A vote by means: favorable sums are at least, or else at most, the edge."""

    assignment_ids: Counts
    votes: Counts
    thresholds: Vector  # of the score; none: the score itself contributes
    grades: Counts
    above: bool
    edge: float


class LatticeKernel(Protocol):
    """Searches over all assignments of finite sensitive attributes."""

    def tally(
        self,
        people: Matrix,
        *,
        majority: bool,
        weights: VoteWeights | None,
        limits: Limits,
        threads: int,
    ) -> KernelCounts:
        """Count decisions; with `majority`, stop once the majority is certain."""
        ...

    def majority(self, people: Matrix, *, threads: int) -> Answers | None:
        """Decide each row by majority; None if a row is invalid or needs exact arithmetic."""
        ...

    def mean_decisions(self, people: Matrix, vote: KernelVote, *, threads: int) -> Counts | None:
        """Decide each row by a mean: 1, 0, or −1 where that needs exact arithmetic.

        None if a row is invalid, or if the kernel computes no means.
        """
        ...

    def find(self, people: Matrix, references: References, limits: Limits) -> KernelSearch:
        """Find counterparts that differ from their person's reference."""
        ...

    def worst(
        self,
        people: Matrix,
        objectives: Sequence[Objective],
        floors: Vector,
        *,
        approximate: bool,
        limits: Limits,
        threads: int,
    ) -> KernelSearch:
        """Find the counterparts that may have the largest objective, above each person's floor.

        `approximate` finds one that nearly has it. All objectives are of one rule.
        """
        ...


@dataclass(frozen=True, slots=True, eq=False)
class LinePoint:
    """The highest point along a real-valued attribute, and a bound on all others."""

    counterpart: Vector | None
    ceiling: float  # no counterpart has a higher score
    finished: bool


class LineKernel(Protocol):
    """Searches along one real-valued sensitive attribute, for all values of the others."""

    def follow(self, person: Vector, *, sign: float, limits: Limits) -> LinePoint:
        """Find the highest score, or the lowest for a negative sign."""
        ...
