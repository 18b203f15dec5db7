"""Training and validation people, and the people of one epoch."""

from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from feta.arrays import Counts, Matrix, Vector
from feta.errors import DomainError
from feta.space.feature_space import FeatureSpace
from feta.train.task import Task

# The fraction held out without a validation set, as in the paper.
HELD_OUT = 0.1

Subset = Literal["fresh", "fixed"]


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """Rows and targets of the training people and of the validation people (`held`)."""

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
        """Check people and labels; without a validation set, hold out a random tenth."""
        people = np.asarray(people, dtype=np.float64)
        space.check(people)
        targets = task.targets(labels, len(people))
        if validation is not None:
            held = np.asarray(validation[0], dtype=np.float64)
            space.check(held)
            split = cls(people, targets, held, task.targets(validation[1], len(held)))
        else:
            order = np.random.default_rng([seed, 3]).permutation(len(people))
            out = np.sort(order[: max(1, round(HELD_OUT * len(people)))])
            rest = np.delete(np.arange(len(people)), out)
            split = cls(people[rest], targets[rest], people[out], targets[out])
        if not len(split.people) or not len(split.held):
            raise DomainError(
                f"too few people: got {len(split.people)} for training and {len(split.held)} for "
                "validation; expected at least 1 of each"
            )
        return split


def draw(
    n_people: int, share: float, subset: Subset, seed: int, rng: np.random.Generator
) -> Counts:
    """Draw the people of an epoch, at least one: fresh each time, or the same by the seed."""
    size = max(1, round(share * n_people))
    if size == n_people:
        return np.arange(n_people)
    source = rng if subset == "fresh" else np.random.default_rng([seed, 4])
    return np.sort(source.choice(n_people, size, replace=False))
