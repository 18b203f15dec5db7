"""The protocol of relations: who is a counterpart of whom."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

from feta.arrays import Counts, Flags, Matrix, Vector
from feta.space.axis import Axis
from feta.space.feature_space import FeatureSpace

if TYPE_CHECKING:
    from feta.relation.separated import Separated


class Relation(Protocol):
    """Who is a counterpart of whom, among the people of a space.

    A counterpart has an assignment: values of the sensitive attributes. If they are finite,
    assignments have ids from 0. An equivalence has an exact key: two people whom the relation
    admits are counterparts exactly if their keys are equal.
    """

    def over(self, space: FeatureSpace) -> "Relation":
        """Return the relation among the people of a space."""
        ...

    @property
    def fingerprint(self) -> str:
        """What distinguishes it from the default relation, for digests; empty for the default."""
        ...

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The sensitive attributes, finite ones and real ones."""
        ...

    @property
    def finite(self) -> bool:
        """Whether a person has finitely many counterparts."""
        ...

    @property
    def complete(self) -> bool:
        """Whether every assignment gives a counterpart that differs in the axes only.

        Engines that bound boxes of assignments need this.
        """
        ...

    @property
    def enclosing(self) -> "Relation | None":
        """A complete relation with the same assignment ids, whose counterparts include these.

        Scorers are restricted to it, so that they evaluate assignments in their fastest way.
        """
        ...

    @property
    def has_key(self) -> bool:
        """Whether it is an equivalence, so that fair decisions exist."""
        ...

    @property
    def size(self) -> int:
        """The number of assignments; raises if there are infinitely many."""
        ...

    def assignment_ids(self, person: Vector) -> Counts | None:
        """Return the ids of a person's counterparts, in ascending order; None for all ids."""
        ...

    def count(self, person: Vector) -> int:
        """Return the number of a person's counterparts; the person is one of them."""
        ...

    def counterpart(self, person: Vector, assignment_id: int) -> Vector:
        """Return the person's counterpart with this assignment."""
        ...

    def moved(self, person: Vector, assignment_ids: Counts) -> Matrix:
        """Return the person's counterparts with these assignments, one row each.

        An assignment without a counterpart gives any person who is no counterpart, or the person.
        """
        ...

    def combinations(self, assignment_ids: Counts) -> Counts:
        """Return the id of the sensitive values of each assignment, which has the votes."""
        ...

    def counterparts(self, person: Vector) -> Iterator[Matrix]:
        """Yield all counterparts of a person in blocks; the person is one of them."""
        ...

    def local(self, person: Vector) -> FeatureSpace | None:
        """Return the space of one person's counterparts, if they differ in other columns, too.

        Its sensitive attributes are those in which counterparts differ. None for relations in
        which the sensitive attributes of the space are.
        """
        ...

    @property
    def moving(self) -> Flags:
        """Flags of the columns in which counterparts may differ."""
        ...

    @property
    def separated(self) -> "Separated | None":
        """The counterparts as sums over the sensitive columns, for kernels; None for others."""
        ...

    @property
    def reads_sensitive(self) -> bool:
        """Whether a key, and so a fair decision, needs the sensitive columns."""
        ...

    def obstacle(self, column: str) -> str:
        """Return why numbers of a column must not leave its limits; empty if they may."""
        ...

    @property
    def counts_all_if_none(self) -> bool:
        """Whether all assignments vote where no counterpart has a vote."""
        ...

    @property
    def adjective(self) -> str:
        """Which combinations of sensitive values are compared, such as "plausible"; empty: all."""
        ...

    @property
    def sentences(self) -> tuple[str, ...]:
        """Who is compared with whom, in words; empty for the default."""
        ...

    @property
    def stored(self) -> dict[str, Any] | None:
        """What a file stores; None if no file can store the relation."""
        ...

    def keys(self, people: Matrix) -> list[bytes]:
        """Return the exact key of each person; sensitive columns are read as the relation says."""
        ...

    def admits(self, people: Matrix) -> Flags:
        """Return who can be a counterpart; the others have a key, but are nobody's counterpart."""
        ...

    def reasons(self, person: Vector, counterpart: Vector) -> tuple[str, ...]:
        """Return which other columns of a counterpart moved, and why; empty if none did."""
        ...

    def related(self, person: Vector, other: Vector) -> bool:
        """Return whether two people are counterparts: both admitted, with equal keys."""
        ...
