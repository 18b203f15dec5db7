"""Split: people to learn from, and people held out to choose by."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from feta.arrays import Matrix, Vector
from feta.errors import DomainError
from feta.space.feature_space import FeatureSpace
from feta.train.task import Task

# The share held out where the user names nobody, as in the paper.
HELD_OUT = 0.1


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """Rows and targets, of both kinds of people."""

    people: Matrix
    targets: Vector
    held: Matrix
    held_targets: Vector

    @classmethod
    def of(
        cls,
        space: FeatureSpace,
        task: Task,
        people: Matrix,
        labels: ArrayLike,
        *,
        validation: tuple[Matrix, ArrayLike] | None,
        seed: int,
    ) -> Self:
        """Check people and labels; without a validation set, hold out a tenth, drawn by the seed."""
        people = np.asarray(people, dtype=np.float64)
        space.check(people)
        targets = task.targets(labels, len(people))
        if validation is not None:
            held = np.asarray(validation[0], dtype=np.float64)
            space.check(held)
            found = cls(people, targets, held, task.targets(validation[1], len(held)))
        else:
            order = np.random.default_rng([seed, 3]).permutation(len(people))
            out = np.sort(order[: max(1, round(HELD_OUT * len(people)))])
            kept = np.delete(np.arange(len(people)), out)
            found = cls(people[kept], targets[kept], people[out], targets[out])
        if not len(found.people) or not len(found.held):
            message = f"training needs people to learn from and people to choose by, got {len(found.people)} and {len(found.held)}"
            raise DomainError(message)
        return found
