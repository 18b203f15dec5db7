"""VoteWeights: how many votes each sensitive assignment has, the same for everybody.

Fair decisions stay fair whatever the weights, as long as they do not depend on the person. Weights
belong to the sensitive attributes they were made for: in another order of values, the same number is
another assignment.
"""

from collections.abc import Mapping
from dataclasses import InitVar, dataclass, field

import numpy as np

from feta.arrays import Counts, Matrix
from feta.deprecation import renamed
from feta.errors import SchemaError
from feta.space.attribute import Value
from feta.space.feature_space import FeatureSpace

# All votes together; sums of int64 counts stay far from overflow.
MAX_VOTES = 2**53

# Assignments are numbered in int64.
MAX_ASSIGNMENTS = 2**62


@dataclass(frozen=True, slots=True, eq=False)
class VoteWeights:
    """A finite list of assignments, by their number on the lattice of `space`, and each one's votes."""

    assignment_ids: Counts
    votes: Counts
    space: InitVar[FeatureSpace]
    fingerprint: str = field(init=False)  # of the space's sensitive attributes

    numbers = renamed("numbers", "assignment_ids")

    def __post_init__(self, space: FeatureSpace) -> None:
        assignment_ids, votes = np.asarray(self.assignment_ids), np.asarray(self.votes)
        if assignment_ids.dtype.kind not in "iu" or votes.dtype.kind not in "iu":
            raise SchemaError("vote weights must be whole numbers")
        if (
            assignment_ids.ndim != 1
            or assignment_ids.shape != votes.shape
            or not len(assignment_ids)
        ):
            message = f"vote weights must list assignments and one count each, got the shapes {assignment_ids.shape} and {votes.shape}"
            raise SchemaError(message)
        if (votes < 1).any() or votes.sum(dtype=object) > MAX_VOTES:
            raise SchemaError(
                "each assignment listed must have one vote or more, at most 2^53 in all"
            )
        if (
            (assignment_ids < 0).any()
            or (assignment_ids > MAX_ASSIGNMENTS).any()
            or len(np.unique(assignment_ids)) != len(assignment_ids)
        ):
            raise SchemaError("each assignment must be listed once")
        if int(assignment_ids.max()) >= space.lattice.size:
            message = f"an assignment's number must be below {space.lattice.size}, got {int(assignment_ids.max())}"
            raise SchemaError(message)
        object.__setattr__(self, "fingerprint", space.sensitive_fingerprint)
        object.__setattr__(self, "assignment_ids", assignment_ids.astype(np.int64))
        object.__setattr__(self, "votes", votes.astype(np.int64))

    @classmethod
    def from_people(cls, space: FeatureSpace, people: Matrix) -> "VoteWeights":
        """Give each assignment as many votes as there are people who have it."""
        space.check(people)
        _check_lattice(space)
        assignment_ids, votes = np.unique(space.lattice.assignment_ids(people), return_counts=True)
        return cls(assignment_ids, votes, space)

    @classmethod
    def of(cls, space: FeatureSpace, votes: Mapping[tuple[Value, ...], int]) -> "VoteWeights":
        """Give votes by the sensitive values, in the order of the space's attributes.

        Examples
        --------
        >>> from feta import Categorical, Integer
        >>> space = FeatureSpace((Integer("age", 18, 19, sensitive=True), Categorical("sex", ("f", "m"), sensitive=True)))
        >>> VoteWeights.of(space, {(18, "f"): 3, (19, "m"): 1}).assignment_ids.tolist()
        [0, 3]
        """
        _check_lattice(space)
        assignment_ids = []
        for values in votes:
            number = 0
            if len(values) != len(space.sensitive):
                names = [attribute.name for attribute in space.sensitive]
                raise SchemaError(f"an assignment must give values for {names}, got {values!r}")
            for axis, value in zip(space.lattice.axes, values, strict=True):
                index = axis.attribute.indices(axis.attribute.encode([value]))[0]
                number = number * len(axis) + int(index)
            assignment_ids.append(number)
        counts = list(votes.values())
        if not all(isinstance(count, int | np.integer) for count in counts):
            raise SchemaError("vote weights must be whole numbers")
        return cls(
            np.array(assignment_ids, dtype=np.int64), np.array(counts, dtype=np.int64), space
        )

    @property
    def total(self) -> int:
        """All votes together."""
        return int(self.votes.sum())

    def check(self, space: FeatureSpace) -> None:
        """Raise unless the space has the sensitive attributes that the weights were made for."""
        if self.fingerprint != space.sensitive_fingerprint:
            names = ", ".join(f"{one.name!r} ({one.domain()})" for one in space.sensitive)
            message = f"vote weights belong to another space: got weights for other sensitive attributes, or for their values in another order; expected {names}; make them with VoteWeights.of or VoteWeights.from_people on the model's space"
            raise SchemaError(message)


def _check_lattice(space: FeatureSpace) -> None:
    if space.lattice.size > MAX_ASSIGNMENTS:
        raise SchemaError(
            "vote weights need fewer than 2^62 assignments; narrow the sensitive domains"
        )
