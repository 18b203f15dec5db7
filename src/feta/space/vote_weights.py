"""Vote weights: the number of votes of each sensitive assignment, the same for everybody.

Decisions are fair with any weights that do not depend on the person. Weights belong to one set of
sensitive attributes: with another order of values, an assignment id means another assignment.
"""

from collections.abc import Mapping
from dataclasses import InitVar, dataclass, field

import numpy as np

from feta.arrays import Array, Counts, Matrix
from feta.deprecation import renamed
from feta.errors import SchemaError
from feta.space.attribute import Real, Value
from feta.space.feature_space import FeatureSpace
from feta.space.nearest_assignments import nearest_assignments

# The sum of all votes; far below the overflow of int64 counts.
MAX_VOTES = 2**53

# Assignment ids are stored as int64.
MAX_ASSIGNMENTS = 2**62


@dataclass(frozen=True, slots=True, eq=False)
class VoteWeights:
    """Assignments, by their id on the lattice of `space`, and the votes of each."""

    assignment_ids: Counts
    votes: Counts
    space: InitVar[FeatureSpace]
    fingerprint: str = field(init=False)  # of the space's sensitive attributes

    numbers = renamed("numbers", "assignment_ids")

    def __post_init__(self, space: FeatureSpace) -> None:
        assignment_ids, votes = np.asarray(self.assignment_ids), np.asarray(self.votes)
        _check_arrays(assignment_ids, votes)
        _check_assignment_ids(assignment_ids, space)
        object.__setattr__(self, "fingerprint", space.sensitive_fingerprint)
        object.__setattr__(self, "assignment_ids", assignment_ids.astype(np.int64))
        object.__setattr__(self, "votes", votes.astype(np.int64))

    @classmethod
    def from_people(cls, space: FeatureSpace, people: Matrix, *, least: int = 1) -> "VoteWeights":
        """Return weights in which each assignment has one vote per person who has it.

        Weights that are stored should not reveal single people. With `least`, an assignment of
        fewer people is not listed, and its people vote for the nearest listed one.
        """
        space.check(people, limits="open")  # other columns are not counted
        _check_lattice(space)
        assignment_ids, votes = np.unique(space.lattice.assignment_ids(people), return_counts=True)
        return cls.from_counts(space, assignment_ids, votes, least=least)

    @classmethod
    def from_counts(
        cls, space: FeatureSpace, assignment_ids: Counts, votes: Counts, *, least: int = 1
    ) -> "VoteWeights":
        """Return weights from the number of people of each assignment; see `from_people`."""
        _check_arrays(assignment_ids, votes)
        listed = votes >= least
        if not listed.any():
            raise SchemaError(
                f"no sensitive assignment has {least} people: got at most {votes.max()} of "
                f"{votes.sum()}; expected {least} or more, so that the weights reveal nobody; "
                "declare fewer sensitive columns, give more people, or store exact weights "
                "(--exact-weights, or least=1)"
            )
        nearest = nearest_assignments(space, assignment_ids[~listed], assignment_ids[listed])
        merged = votes[listed].copy()
        np.add.at(merged, nearest, votes[~listed])
        return cls(assignment_ids[listed], merged, space)

    @classmethod
    def of(cls, space: FeatureSpace, votes: Mapping[tuple[Value, ...], int]) -> "VoteWeights":
        """Return weights from votes by sensitive values, in the order of the space's attributes.

        Examples
        --------
        >>> from feta import Categorical, Integer
        >>> age = Integer("age", 18, 19, sensitive=True)
        >>> space = FeatureSpace((age, Categorical("sex", ("f", "m"), sensitive=True)))
        >>> VoteWeights.of(space, {(18, "f"): 3, (19, "m"): 1}).assignment_ids.tolist()
        [0, 3]
        """
        _check_lattice(space)
        assignment_ids = np.array([_assignment_id(space, key) for key in votes], dtype=np.int64)
        counts = list(votes.values())
        if not all(isinstance(count, int | np.integer) for count in counts):
            raise SchemaError(f"invalid vote weights: got {counts!r}; expected integers")
        return cls(assignment_ids, np.array(counts, dtype=np.int64), space)

    @property
    def total(self) -> int:
        """The sum of all votes."""
        return int(self.votes.sum())

    def check(self, space: FeatureSpace) -> None:
        """Raise unless the space has the sensitive attributes of these weights."""
        if self.fingerprint != space.sensitive_fingerprint:
            names = ", ".join(f"{a.name!r} ({a.domain()})" for a in space.sensitive)
            raise SchemaError(
                "vote weights belong to another space: got weights for other sensitive attributes, "
                f"or for their values in another order; expected {names}; make them with "
                "VoteWeights.of or VoteWeights.from_people on the model's space"
            )


def _check_arrays(assignment_ids: Array, votes: Array) -> None:
    """Raise unless these are integers, as many ids as votes, and valid numbers of votes."""
    if assignment_ids.dtype.kind not in "iu" or votes.dtype.kind not in "iu":
        raise SchemaError(
            f"invalid vote weights: got arrays of {assignment_ids.dtype} and {votes.dtype}; "
            "expected integers"
        )
    shapes = assignment_ids.shape, votes.shape
    if assignment_ids.ndim != 1 or shapes[0] != shapes[1] or not len(assignment_ids):
        raise SchemaError(
            f"invalid vote weights: got arrays of the shapes {shapes[0]} and {shapes[1]}; "
            "expected a list of assignments, one or more, and one count each"
        )
    if (votes < 1).any():
        raise SchemaError(
            f"invalid vote weights: got {votes.min()} votes; "
            "expected one vote or more for each assignment"
        )
    if votes.sum(dtype=object) > MAX_VOTES:
        raise SchemaError(
            f"invalid vote weights: got {votes.sum(dtype=object)} votes in all; "
            "expected at most 2^53"
        )


def _check_assignment_ids(assignment_ids: Array, space: FeatureSpace) -> None:
    """Raise unless each id is one of the space's, and occurs once."""
    for assignment_id in (int(assignment_ids.min()), int(assignment_ids.max())):
        if not 0 <= assignment_id < min(space.lattice.size, MAX_ASSIGNMENTS + 1):
            raise SchemaError(
                f"invalid assignment id: got {assignment_id}; "
                f"expected a number from 0 to {space.lattice.size - 1}"
            )
    different, counts = np.unique(assignment_ids, return_counts=True)
    if len(different) != len(assignment_ids):
        raise SchemaError(
            f"invalid assignment ids: got {int(different[counts > 1][0])} more than once; "
            "expected each assignment once"
        )


def _assignment_id(space: FeatureSpace, values: tuple[Value, ...]) -> int:
    if len(values) != len(space.sensitive):
        names = [attribute.name for attribute in space.sensitive]
        raise SchemaError(f"invalid assignment: got {values!r}; expected values for {names}")
    assignment_id = 0
    for axis, value in zip(space.lattice.axes, values, strict=True):
        assert not isinstance(axis.attribute, Real)  # the lattice has finite axes only
        index = axis.attribute.indices(axis.attribute.encode([value]))[0]
        assignment_id = assignment_id * len(axis) + int(index)
    return assignment_id


def _check_lattice(space: FeatureSpace) -> None:
    if space.lattice.size > MAX_ASSIGNMENTS:
        raise SchemaError(
            f"too many assignments for vote weights: got {space.lattice.size}; "
            "expected at most 2^62; narrow the sensitive domains"
        )
