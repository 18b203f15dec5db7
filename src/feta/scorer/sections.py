"""Sections: a real-valued sensitive attribute of which a scorer distinguishes only intervals."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from feta.arrays import Matrix, Vector
from feta.space.attribute import Levels, Real
from feta.space.axis import Axis
from feta.space.feature_space import FeatureSpace


@dataclass(frozen=True, slots=True, eq=False)
class Sections:
    """Intervals (previous level, level] of each real-valued axis, in which all scores are equal.

    The first interval starts at the lower limit, and the last level is the upper limit. So every
    level is a value of the attribute that represents its interval.
    """

    axes: tuple[Axis, ...]
    levels: Mapping[int, Vector]  # by index of a real-valued axis, ascending

    def space(self, space: FeatureSpace) -> FeatureSpace:
        """Return the space in which real-valued sensitive attributes have only the levels."""
        numbers = {self.axes[index].attribute.name: levels for index, levels in self.levels.items()}
        return FeatureSpace(
            tuple(
                Levels(attribute.name, tuple(numbers[attribute.name].tolist()), sensitive=True)
                if isinstance(attribute, Real) and attribute.name in numbers
                else attribute
                for attribute in space.attributes
            )
        )

    def represented(self, people: Matrix) -> Matrix:
        """Return people with equal scores whose real-valued attributes are levels."""
        rows = np.array(people)
        for index, levels in self.levels.items():
            column = self.axes[index].columns[0]
            rows[:, column] = levels[np.searchsorted(levels, rows[:, column])]
        return rows

    @property
    def cuts(self) -> tuple[tuple[int, float] | None, ...]:
        """The cuts of a proof whose cells lie between two levels, depth first."""
        inner = [(index, levels[:-1].tolist()) for index, levels in self.levels.items()]
        result: tuple[tuple[int, float] | None, ...] = (None,)
        for index, numbers in reversed(inner):
            cell = result
            for number in reversed(numbers):
                result = ((index, number), *cell, *result)
        return result


def sections_of(restricted: object) -> Sections | None:
    """Return the sections of a restricted scorer, if it has any."""
    sections: Sections | None = getattr(restricted, "sections", None)
    return sections
