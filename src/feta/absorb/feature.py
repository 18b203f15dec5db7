"""Feature: how one number that preprocessing makes hangs on the raw columns.

A feature is additive: a constant, plus a function of each column by itself. Which columns enter as a
straight line and which in another way is what decides between a slope and a table.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from feta.errors import NetworkError
from feta.io.sanitize import joined
from feta.space.attribute import Categorical, Derived, Real
from feta.space.feature_space import FeatureSpace

# Roundings that a source may suffer in evaluating a function such as a logarithm or a spline.
BEND_ROUNDINGS = 8

# The same for one step that scales and shifts.
SCALE_ROUNDINGS = 4


@dataclass(frozen=True, slots=True)
class Feature:
    """The columns that enter as a line (and a jump where missing), and those that enter by a table.

    `opaque` features come from code that FETA does not know: their columns may enter in any way,
    until they are sampled. `size` bounds the terms that the source adds up, `roundings` how often it
    rounds on the way: both are for the bound on its rounding error only. `local` are columns whose
    line is known only within the schema's limits.
    """

    lines: frozenset[str] = frozenset()
    tables: frozenset[str] = frozenset()
    opaque: bool = False
    size: float = 1.0
    roundings: int = 0
    local: frozenset[str] = frozenset()

    @property
    def columns(self) -> frozenset[str]:
        """Every column it hangs on."""
        return self.lines | self.tables

    def sized(self, size: float, roundings: int) -> "Feature":
        """Take the same with terms of another size, rounded some more times."""
        return replace(self, size=size, roundings=self.roundings + roundings)

    def within_limits(self) -> "Feature":
        """Take the same, known only within the schema's limits."""
        return replace(self, local=self.columns)


def raw_feature(space: FeatureSpace, name: str) -> Feature:
    """Make the feature that a raw column is; one that the space lacks is a constant."""
    if name not in {attribute.name for attribute in space.attributes}:
        return Feature()
    attribute = space.attribute(name)
    column = root(space, name)
    if isinstance(attribute, Categorical | Derived):
        return Feature(tables=frozenset([column]))
    size = float(space.magnitudes[space.columns_of(attribute).start])
    return Feature(lines=frozenset([column]), size=size)


def root(space: FeatureSpace, name: str) -> str:
    """Name the column that decides about this one: bands move with their finite source."""
    attribute = space.attribute(name)
    if isinstance(attribute, Derived) and not isinstance(space.attribute(attribute.source), Real):
        return attribute.source
    return name


def bent(space: FeatureSpace, feature: Feature, where: str) -> Feature:
    """Take any function of a feature: a table, if it hangs on one finite column; else refused."""
    return product(space, [feature], where)


def product(space: FeatureSpace, features: Sequence[Feature], where: str) -> Feature:
    """Take any function of several features together: they must hang on one finite column."""
    columns = frozenset[str]().union(*(one.columns for one in features))
    roundings = max((one.roundings for one in features), default=0) + BEND_ROUNDINGS
    if any(one.opaque for one in features):
        return Feature(tables=columns, opaque=True, roundings=roundings, local=columns)
    if len(columns) > 1:
        raise NetworkError(
            f"{where} makes an interaction of {quoted(columns)}, so no column's share can be told apart; leave the interaction out, or make one category of these columns"
        )
    for name in columns:
        attribute = space.attribute(name)
        if isinstance(attribute, Real):
            raise NetworkError(
                f"{where} bends {name!r}, a real number, so its share is neither a slope nor a table; declare a step for it ({example(attribute)}), which makes it finite, or scale it without bending"
            )
    return Feature(tables=columns, roundings=roundings)


def mixture(features: Iterable[Feature], *, size: float, roundings: int) -> Feature:
    """Take a weighted sum of features."""
    parts = list(features)
    tables = frozenset[str]().union(*(one.tables for one in parts))
    lines = frozenset[str]().union(*(one.lines for one in parts)) - tables
    opaque = any(one.opaque for one in parts)
    most = max((one.roundings for one in parts), default=0)
    local = frozenset[str]().union(*(one.local for one in parts))
    return Feature(lines, tables, opaque, size, most + roundings, local)


def example(attribute: Real) -> str:
    """Write the schema line that gives a real column a step."""
    step = 10.0 ** len(str(int(max(1.0, (attribute.high - attribute.low) / 1000)))) / 10
    return f'{attribute.name} = {{ type = "number", min = {attribute.low:g}, max = {attribute.high:g}, step = {step:g} }}'


def quoted(names: Iterable[str]) -> str:
    """Name columns in a sentence."""
    return joined(repr(name) for name in sorted(names))
