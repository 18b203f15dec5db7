"""Exact evaluation of conditions on people.

Logic has three values, as in SQL: a comparison with a missing cell is neither true nor false.
Whoever asks decides what that means: a selection takes people for whom a condition is true, and a
constraint excludes people for whom it is false.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Any, assert_never

import numpy as np
from numpy.typing import NDArray

from feta.arrays import Array, Flags, Matrix
from feta.conditions.condition import (
    AllOf,
    Among,
    AnyOf,
    Compared,
    Condition,
    Implies,
    IsMissing,
    Linear,
    Not,
    Operator,
)
from feta.space.attribute import OTHER, Attribute, Categorical, Derived, Value
from feta.space.feature_space import FeatureSpace

Signs = NDArray[np.int8]

OPERATORS: dict[Operator, Callable[[Signs], Flags]] = {
    "<": lambda sign: sign < 0,
    "<=": lambda sign: sign <= 0,
    "==": lambda sign: sign == 0,
    "!=": lambda sign: sign != 0,
    ">=": lambda sign: sign >= 0,
    ">": lambda sign: sign > 0,
}

# Sums of integers up to here are exact in float64.
EXACT = 2.0**52

# Below this, float64 has fewer digits.
TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """A column of people: numbers, or indices of categories, and which cells are missing.

    The arrays may have any shape; the columns of one evaluation are broadcast to each other.
    """

    numbers: Array
    missing: Flags
    values: tuple[Value, ...] = ()  # of a category


@dataclass(frozen=True, slots=True, eq=False)
class Truth:
    """Where a condition is true and where it is false; elsewhere it is unknown."""

    true: Flags
    false: Flags

    @property
    def opposite(self) -> "Truth":
        """The truth of the negation."""
        return Truth(self.false, self.true)

    def both(self, other: "Truth") -> "Truth":
        """Return the truth of two conditions together."""
        return Truth(self.true & other.true, self.false | other.false)


def evaluate(condition: Condition, cells: Mapping[str, Cells]) -> Truth:
    """Evaluate a condition exactly."""
    match condition:
        case Compared(total=total, operator=operator):
            columns = [cells[name] for name, _ in total.terms]
            missing = reduce(np.logical_or, [column.missing for column in columns])
            holds = OPERATORS[operator](signs(total, [column.numbers for column in columns]))
            return Truth(holds & ~missing, ~holds & ~missing)
        case Among(column=name, values=values):
            column = cells[name]
            chosen = np.zeros(len(column.values) + 1, dtype=bool)  # the last one is missing
            chosen[[column.values.index(value) for value in values]] = True
            holds = chosen[column.numbers]
            return Truth(holds & ~column.missing, ~holds & ~column.missing)
        case IsMissing(column=name):
            return Truth(cells[name].missing, ~cells[name].missing)
        case Not(part=part):
            return evaluate(part, cells).opposite
        case AllOf(parts=parts):
            return _together(evaluate(part, cells) for part in parts)
        case AnyOf(parts=parts):
            return _together(evaluate(part, cells).opposite for part in parts).opposite
        case Implies(premise=premise, conclusion=conclusion):
            # False only where the premise is true and the conclusion is false.
            opposite = evaluate(conclusion, cells).opposite
            return evaluate(premise, cells).both(opposite).opposite
        case _:
            assert_never(condition)


def _together(parts: Iterator[Truth]) -> Truth:
    """Return the truth of conditions together; those after one that is false are not evaluated."""
    result = next(parts)
    for part in parts:
        false = result.false
        if false.item() if false.size == 1 else false.all():
            return result
        result = result.both(part)
    return result


def cells_of(space: FeatureSpace, people: Matrix) -> dict[str, Cells]:
    """Return the columns of encoded people."""
    return {
        attribute.name: attribute_cells(attribute, people[:, space.columns_of(attribute)])
        for attribute in space.attributes
    }


def attribute_cells(attribute: Attribute, codes: Matrix) -> Cells:
    """Return the cells of one attribute from its columns."""
    if isinstance(attribute, Categorical):
        indices = np.argmax(codes, axis=1)
        values = (*attribute.values, OTHER) if attribute.other else attribute.values
        return Cells(indices, indices == len(values), values)
    if isinstance(attribute, Derived):
        labels = tuple(label for label, _, _ in attribute.bands)
        return Cells(np.argmax(codes, axis=1), np.zeros(len(codes), dtype=bool), labels)
    absent = codes[:, 1] == 1.0 if attribute.missing else np.zeros(len(codes), dtype=bool)
    return Cells(codes[:, 0], absent)


def signs(total: Linear, numbers: Sequence[Array]) -> Signs:
    """Return the exact sign of a sum, one number per term: −1, 0 or 1."""
    coefficients = [coefficient for _, coefficient in total.terms]
    if len(coefficients) == 1:
        return _sign_of_one(coefficients[0], total.constant, numbers[0])
    return _sign_of_sum(coefficients, total.constant, numbers)


def _sign_of_one(coefficient: Fraction, constant: Fraction, numbers: Array) -> Signs:
    """Compare a column with the number at which the sum is 0."""
    edge = -constant / coefficient
    below = _float_at_most(edge)
    if math.isfinite(below) and Fraction(below) == edge:
        sign = (numbers > below).astype(np.int8) - (numbers < below).astype(np.int8)
    else:
        sign = np.where(numbers <= below, -1, 1).astype(np.int8)
    return sign if coefficient > 0 else -sign


def _float_at_most(number: Fraction) -> float:
    """Return the largest float64 that is not above a number; −∞ if there is none."""
    try:
        nearest = float(number)
    except OverflowError:
        return float(np.finfo(np.float64).max) if number > 0 else -math.inf
    return nearest if Fraction(nearest) <= number else float(np.nextafter(nearest, -np.inf))


def _sign_of_sum(
    coefficients: Sequence[Fraction], constant: Fraction, numbers: Sequence[Array]
) -> Signs:
    """Sum in float64 with an error bound, and exactly where this does not decide."""
    denominator = math.lcm(constant.denominator, *(one.denominator for one in coefficients))
    factors = [int(one * denominator) for one in coefficients]
    offset = int(constant * denominator)
    small = max(map(abs, [*factors, offset])) < EXACT
    # Of the sum times the denominator, or of the sum itself, whose coefficients are rounded.
    floats = _floats([*factors, offset] if small else [*coefficients, constant])
    with np.errstate(over="ignore", invalid="ignore"):
        products = [factor * one for factor, one in zip(floats[:-1], numbers, strict=True)]
        sums = np.asarray(sum(products, start=np.float64(floats[-1])))
        sizes = np.asarray(sum(map(np.abs, products), start=np.float64(abs(floats[-1]))))
    integral = small and all(bool((one == np.floor(one)).all()) for one in numbers)
    exact = (sizes <= EXACT) if integral else np.zeros(sums.shape, dtype=bool)
    with np.errstate(invalid="ignore"):
        # Each coefficient, product and sum is rounded once; a product may also underflow.
        errors = sizes * ((len(factors) + 3) * 2.0**-52) + TINY
        decided = exact | (np.abs(sums) > errors)
    result = np.asarray(np.sign(np.where(decided, sums, 0.0)), dtype=np.int8)
    rest = np.nonzero(~decided)
    if rest[0].size:
        rows = np.stack([np.broadcast_to(one, sums.shape)[rest] for one in numbers], axis=1)
        distinct, inverse = np.unique(rows, axis=0, return_inverse=True)
        exact_signs = [_exact_sign(factors, offset, row) for row in distinct.tolist()]
        result[rest] = np.array(exact_signs, dtype=np.int8)[inverse.ravel()]
    return result


def _floats(numbers: Sequence[Fraction | int]) -> list[float]:
    """Round numbers to float64; infinity if one of them overflows or underflows."""
    try:
        floats = [float(number) for number in numbers]
    except OverflowError:
        return [math.inf] * len(numbers)
    lost = any(number and abs(one) < TINY for number, one in zip(numbers, floats, strict=True))
    return [math.inf] * len(numbers) if lost else floats


def _exact_sign(factors: Sequence[int], offset: int, row: Sequence[Any]) -> int:
    total = sum((k * Fraction(x) for k, x in zip(factors, row, strict=True)), Fraction(offset))
    return (total > 0) - (total < 0)
