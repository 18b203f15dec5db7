"""One tree per attribute of a scorecard: each leaf holds the points of a bin."""

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from feta.arrays import Flags
from feta.errors import SchemaError
from feta.readers.scorecard.bins import Bin, Interval, ValueSet
from feta.scorer.forest.builder import CutTest, NodeTest, SetTest, TreesBuilder
from feta.scorer.forest.trees import Domain, Numbers, OneHot
from feta.space.attribute import Attribute, Categorical, Derived, Integer, Levels, Real, Value
from feta.space.feature_space import FeatureSpace

Bins = Sequence[tuple[Bin, float]]

# A finite column with more values needs intervals that reach from -inf to inf.
MAX_LISTED = 2**17

# No number is below this.
LOWEST = -float(np.finfo(np.float64).max)


def add_tree(builder: TreesBuilder, space: FeatureSpace, attribute: Attribute, bins: Bins) -> None:
    """Append the tree of one attribute; raise unless every value is in exactly one bin."""
    intervals = _line(bins)
    if intervals is not None and not isinstance(attribute, Categorical | Derived):
        tests = _cuts(space, attribute, intervals, bins)
    else:
        tests = _sets(space, attribute, bins)
    _chain(builder, tests)


# Tests one after the other, each with the points of those who go left; the last one has no test.
Steps = list[tuple[NodeTest | None, float]]


def _chain(builder: TreesBuilder, steps: Steps) -> None:
    previous = None
    for test, points in steps:
        node = builder.leaf([points]) if test is None else builder.inner(test)
        if previous is None:
            builder.root(node)
        else:
            builder.link(previous[0], left=previous[1], right=node)
        if test is not None:
            previous = (node, builder.leaf([points]))


def _line(bins: Bins) -> list[tuple[Interval, float]] | None:
    """Return intervals that follow each other from -inf to inf; None if they do not."""
    pairs = [(part, points) for part, points in bins if isinstance(part, Interval)]
    pairs.sort(key=lambda pair: (pair[0].low, pair[0].high))
    if not pairs or len(pairs) + sum(part == "missing" for part, _ in bins) != len(bins):
        return None
    ends = (pairs[0][0].low, pairs[-1][0].high)
    if ends != (-math.inf, math.inf):
        return None
    meets = all(
        one.high == other.low and one.closed_high != other.closed_low
        for (one, _), (other, _) in pairwise(pairs)
    )
    return pairs if meets else None


def _cuts(
    space: FeatureSpace,
    attribute: Integer | Levels | Real,
    intervals: list[tuple[Interval, float]],
    bins: Bins,
) -> Steps:
    """Return one cut per interval but the last, after the test of a missing number."""
    column = space.columns_of(attribute).start
    flag = column + 1 if attribute.missing else -1
    steps: Steps = []
    if attribute.missing:
        steps.append((CutTest(column, LOWEST, flag, missing_left=True), _missing(attribute, bins)))
    for interval, points in intervals[:-1]:
        steps.append((CutTest(column, interval.last, flag), points))
    return [*steps, (None, intervals[-1][1])]


def _missing(attribute: Attribute, bins: Bins) -> float:
    points = [points for part, points in bins if part == "missing"]
    if len(points) != 1:
        raise _wrong_bins(attribute, None, len(points))
    return points[0]


def _sets(space: FeatureSpace, attribute: Attribute, bins: Bins) -> Steps:
    """Return one set of values per bin; every value is compared with every bin."""
    if isinstance(attribute, Real) or _length(attribute) > MAX_LISTED:
        raise SchemaError(
            f"the bins of {attribute.name!r} do not cover all numbers: got intervals with gaps, "
            "overlaps or finite ends; expected intervals that follow each other from -inf to inf"
        )
    values = _values(attribute)
    inside = np.array([[_contains(part, value) for value in values] for part, _ in bins])
    rest = [index for index, (part, _) in enumerate(bins) if part == "otherwise"]
    present = np.array([value is not None for value in values])
    for index in rest[:1]:
        inside[index] = present & ~inside.any(axis=0)
    counts = inside.sum(axis=0)
    if len(rest) > 1 or (counts != 1).any():
        worst = int(np.argmax(counts != 1))
        raise _wrong_bins(attribute, values[worst], int(counts[worst]))
    domain = _domain(space, attribute)
    return _set_steps(domain, inside, [points for _, points in bins])


def _set_steps(domain: Domain, inside: Flags, points: list[float]) -> Steps:
    used = [index for index in range(len(points)) if inside[index].any()]
    steps: Steps = [(SetTest(domain, inside[index]), points[index]) for index in used[:-1]]
    return [*steps, (None, points[used[-1]])]


def _contains(part: Bin, value: Value) -> bool:
    match part:
        case "missing":
            return value is None
        case "otherwise":
            return False
        case ValueSet():
            return value in part
        case Interval():
            return isinstance(value, int | float) and float(value) in part


def _length(attribute: Attribute) -> int:
    return 0 if isinstance(attribute, Derived | Real) else attribute.n_values


def _values(attribute: Attribute) -> list[Value]:
    """Return all values in the order of the domain's entries; None is missing."""
    match attribute:
        case Categorical():
            return list(attribute.all_values)
        case Derived():
            return [label for label, _, _ in attribute.bands]
        case Integer(low=low, high=high):
            numbers: list[Value] = [float(number) for number in range(low, high + 1)]
        case _:
            assert isinstance(attribute, Levels)
            numbers = list(attribute.numbers)
    return [*numbers, None] if attribute.missing else numbers


def _domain(space: FeatureSpace, attribute: Attribute) -> Domain:
    columns = space.columns_of(attribute)
    if isinstance(attribute, Categorical | Derived):
        return OneHot(columns.start, attribute.width)
    numbers = [float(value) for value in _values(attribute) if isinstance(value, int | float)]
    return Numbers(columns.start, np.array(numbers), columns.start + 1 if attribute.missing else -1)


def _wrong_bins(attribute: Attribute, value: Value, n_bins: int) -> SchemaError:
    what = "a missing value" if value is None else repr(value)
    return SchemaError(
        f"the bins of {attribute.name!r} do not fit its values: got {what} in {n_bins} bins; "
        "expected every value of the schema in exactly one; write a bin 'missing' or 'else' for "
        "the rest"
    )
