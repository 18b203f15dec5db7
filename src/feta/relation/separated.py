"""Consequences as sums: each sensitive column adds its own amount to each descendant.

Then a weight of a descendant times the amounts is one more table over each sensitive column, and a
first layer needs no rows. Rows are extended by the columns of these amounts: exact copies of the
descendant's column, one per sensitive column, so that no number is rounded.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from feta.arrays import Counts, Matrix, Vector, frozen
from feta.relation.effects import CompiledEffect, step_of
from feta.space.attribute import Derived, Integer, Levels
from feta.space.axis import Axis
from feta.space.feature_space import FeatureSpace

# Numbers of descendants are integers times a power of two, with this many bits and one to add.
EXACT = 2**51


@dataclass(frozen=True, slots=True, eq=False)
class Separated:
    """The amounts that each sensitive column adds to each descendant."""

    columns: Counts  # of the descendants in a row
    axes: tuple[Axis, ...]  # each with its columns of amounts after those of the space
    amounts: tuple[Matrix, ...]  # per axis: (values, descendants), in raw units
    width: int  # of an extended row
    magnitudes: Vector  # of an extended row

    @property
    def finite(self) -> bool:
        """True: there are finitely many combinations."""
        return True

    @property
    def repeated(self) -> Counts:
        """The column of the space that each further column of an extended row repeats."""
        return np.tile(self.columns, len(self.axes))

    def people(self, people: Matrix) -> Matrix:
        """Return extended rows, in which descendants are replaced by the noise."""
        rows = np.zeros((len(people), self.width))
        rows[:, : people.shape[1]] = people
        for axis, amounts in zip(self.axes, self.amounts, strict=True):
            rows[:, self.columns] -= amounts[axis.indices(people)]
        return rows


def separated(
    space: FeatureSpace, effects: Mapping[str, Sequence[CompiledEffect]]
) -> Separated | None:
    """Return the sums, or None if effects depend on several sensitive columns or are rounded."""
    names = [axis.attribute.name for axis in space.axes]
    totals: dict[str, list[Counts]] = {}
    for column, of_column in effects.items():
        attribute = space.attribute(column)
        assert isinstance(attribute, Integer | Levels)  # others have no effects
        bands = any(isinstance(a, Derived) and a.source == column for a in space.attributes)
        if attribute.missing or bands or not _exact(attribute):
            return None
        total = [np.zeros(len(axis), dtype=np.int64) for axis in space.axes]
        for effect in of_column:
            moving = [name for name in effect.parents if name in names or name in totals]
            if not moving:
                continue
            if len(effect.parents) > 1:
                return None
            parent = effect.parents[0]
            if parent in names:
                if effect.table is None:
                    return None
                total[names.index(parent)] += effect.table
                continue
            factor = _steps_per_step(effect, space, parent)
            if factor is None:
                return None
            for index, more in enumerate(totals[parent]):
                total[index] += factor * more
        totals[column] = total
    return _extended(space, totals)


def _exact(attribute: Integer | Levels) -> bool:
    """Return whether sums of an attribute's numbers and steps are exact in float64."""
    if isinstance(attribute, Integer):
        return max(abs(attribute.low), abs(attribute.high)) < EXACT
    step = step_of(attribute)
    numbers = np.array(attribute.numbers)
    ratios = [Fraction(float(number)) / step for number in (numbers[0], numbers[-1])]
    if step.denominator & (step.denominator - 1) or any(one.denominator != 1 for one in ratios):
        return False
    # Multiples of a power of two over an odd number: all of them are multiples of 1/denominator.
    units = np.abs(numbers).max() * step.denominator
    even = numbers[0] + np.arange(len(numbers)) * float(step)
    return bool(units < EXACT and (even == numbers).all())


def _steps_per_step(effect: CompiledEffect, space: FeatureSpace, parent: str) -> int | None:
    """Return the steps that one step of a parent adds; None if the sum is rounded."""
    attribute = space.attribute(parent)
    assert isinstance(attribute, Integer | Levels)
    if not effect.slope:
        return None
    factor = effect.slope * step_of(attribute)
    first = effect.slope * Fraction(attribute.lowest)
    # Half to even depends on the parity of the integers that are added.
    if factor.denominator != 1 or (2 * first).denominator == 1 != first.denominator:
        return None
    return int(factor)


def _extended(space: FeatureSpace, totals: Mapping[str, list[Counts]]) -> Separated | None:
    attributes = [space.attribute(name) for name in totals]
    columns = np.array([space.columns_of(one).start for one in attributes], dtype=np.int64)
    steps = np.array([float(step_of(one)) for one in attributes])
    units = np.array([1 / step_of(one).denominator for one in attributes])
    axes, amounts, width = [], [], space.width
    magnitudes = [*space.magnitudes.tolist()]
    for index, axis in enumerate(space.axes):
        # Integers times a dyadic step are exact, or too large and excluded.
        amount = np.stack([totals[name][index] for name in totals], axis=1) * steps
        if (np.abs(amount).max(axis=0, initial=0.0) >= EXACT * units / len(space.axes)).any():
            return None
        axes.append(
            replace(
                axis,
                columns=(*axis.columns, *range(width, width + len(columns))),
                moves=tuple(map(tuple, amount.T.tolist())),
            )
        )
        largest = np.abs(amount).max(axis=0, initial=0.0)
        magnitudes += largest.tolist()
        for column, size in zip(columns.tolist(), largest.tolist(), strict=True):
            magnitudes[column] = float(np.nextafter(magnitudes[column] + size, np.inf))
        amounts.append(frozen(amount))
        width += len(columns)
    return Separated(columns, tuple(axes), tuple(amounts), width, frozen(magnitudes))
