"""The default relation: counterparts agree on all columns that are not sensitive."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from feta.arrays import Counts, Flags, Matrix, Vector
from feta.space.axis import Axis
from feta.space.feature_space import FeatureSpace


@dataclass(frozen=True, eq=False)
class AllSensitiveValues:
    """All combinations of the sensitive attributes' values, whoever the person is."""

    space: FeatureSpace

    def over(self, space: FeatureSpace) -> "AllSensitiveValues":
        """Return the relation among the people of a space."""
        return AllSensitiveValues(space)

    @property
    def fingerprint(self) -> str:
        """Empty: it is the default."""
        return ""

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The sensitive attributes, finite ones and real ones."""
        return self.space.axes

    @property
    def finite(self) -> bool:
        """Whether a person has finitely many counterparts."""
        return self.space.finite

    @property
    def complete(self) -> bool:
        """True: every assignment gives a counterpart."""
        return True

    @property
    def enclosing(self) -> "AllSensitiveValues":
        """The relation itself."""
        return self

    @property
    def has_key(self) -> bool:
        """True: the shared columns are the key."""
        return True

    @cached_property
    def size(self) -> int:
        """The number of assignments; raises if there are infinitely many."""
        return self.space.lattice.size

    def assignment_ids(self, person: Vector) -> Counts | None:
        """Return None: everybody has a counterpart with each id."""
        del person
        return None

    def count(self, person: Vector) -> int:
        """Return the number of a person's counterparts; the person is one of them."""
        del person
        return self.size

    def counterpart(self, person: Vector, assignment_id: int) -> Vector:
        """Return the person's counterpart with this assignment."""
        return self.space.lattice.counterpart(person, assignment_id)

    def moved(self, person: Vector, assignment_ids: Counts) -> Matrix:
        """Return the person's counterparts with these assignments, one row each."""
        rows = np.repeat(np.asarray(person)[None, :], len(assignment_ids), axis=0)
        return self.space.lattice.moved(rows, assignment_ids)

    def combinations(self, assignment_ids: Counts) -> Counts:
        """Return the ids themselves: an assignment is a combination of sensitive values."""
        return assignment_ids

    def counterparts(self, person: Vector) -> Iterator[Matrix]:
        """Yield all counterparts of a person in blocks; the person is one of them."""
        return self.space.lattice.counterparts(person)

    def local(self, person: Vector) -> None:
        """Return None: counterparts differ in the sensitive attributes only."""
        del person

    @property
    def moving(self) -> Flags:
        """Flags of the columns in which counterparts may differ."""
        return self.space.sensitive_columns

    @property
    def separated(self) -> None:
        """None: nothing moves along."""
        return

    @property
    def reads_sensitive(self) -> bool:
        """False: the shared columns are the key."""
        return False

    def obstacle(self, column: str) -> str:
        """Return nothing: the limits do not matter."""
        del column
        return ""

    def reasons(self, person: Vector, counterpart: Vector) -> tuple[str, ...]:
        """Return nothing: nothing moves along."""
        del person, counterpart
        return ()

    @property
    def counts_all_if_none(self) -> bool:
        """False: vote weights are never empty."""
        return False

    @property
    def adjective(self) -> str:
        """Empty: all combinations of sensitive values are compared."""
        return ""

    @property
    def sentences(self) -> tuple[str, ...]:
        """Empty: it is the default."""
        return ()

    @property
    def stored(self) -> dict[str, Any]:
        """Empty: it is the default."""
        return {}

    def keys(self, people: Matrix) -> list[bytes]:
        """Return the shared columns of each person as bytes."""
        # + 0.0 turns −0.0 into 0.0, which it equals.
        shared = np.ascontiguousarray(people[:, ~self.space.sensitive_columns] + 0.0)
        content, size = shared.tobytes(), shared.shape[1] * shared.itemsize
        return [content[row * size : (row + 1) * size] for row in range(len(people))]

    def admits(self, people: Matrix) -> Flags:
        """Return True for everybody."""
        return np.ones(len(people), dtype=bool)

    def related(self, person: Vector, other: Vector) -> bool:
        """Return whether two people have the same key."""
        first, second = self.keys(np.stack([person, other]))
        return first == second
