"""Dependence of one preprocessed feature on the raw columns.

A feature is additive: a constant plus one function per column. A column that enters linearly
becomes a slope, any other column a table.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from feta.errors import NetworkError
from feta.io.sanitize import joined
from feta.io.toml_text import toml_key
from feta.space.attribute import Categorical, Derived, Real
from feta.space.feature_space import FeatureSpace

# Roundings of a source that evaluates a function such as a logarithm or a spline.
NONLINEAR_ROUNDINGS = 8

# Roundings of a source that scales and shifts.
SCALE_ROUNDINGS = 4


@dataclass(frozen=True, slots=True)
class Feature:
    """The columns that enter linearly (with a jump if missing), and those that enter by a table.

    `opaque` features are computed by unknown code: until they are sampled, their columns may enter
    in any way. `magnitude` bounds the terms that the source adds up, and `roundings` counts its
    roundings; both serve only the bound on the source's rounding error. `local` are columns whose
    dependence is known only within the schema's limits.
    """

    linear: frozenset[str] = frozenset()
    tabular: frozenset[str] = frozenset()
    opaque: bool = False
    magnitude: float = 1.0
    roundings: int = 0
    local: frozenset[str] = frozenset()

    @property
    def columns(self) -> frozenset[str]:
        """All columns that the feature depends on."""
        return self.linear | self.tabular

    def rounded(self, roundings: int) -> "Feature":
        """Return the feature after some more roundings."""
        return replace(self, roundings=self.roundings + roundings)

    def within_limits(self) -> "Feature":
        """Return the feature as known only within the schema's limits."""
        return replace(self, local=self.columns)


def raw_feature(space: FeatureSpace, name: str) -> Feature:
    """Return the feature of a raw column; a column outside the space is a constant."""
    if name not in {attribute.name for attribute in space.attributes}:
        return Feature()
    attribute = space.attribute(name)
    column = root_column(space, name)
    if isinstance(attribute, Categorical | Derived):
        return Feature(tabular=frozenset([column]))
    magnitude = float(space.magnitudes[space.columns_of(attribute).start])
    return Feature(linear=frozenset([column]), magnitude=magnitude)


def root_column(space: FeatureSpace, name: str) -> str:
    """Return the column that determines this one: bands are a function of a finite source."""
    attribute = space.attribute(name)
    if isinstance(attribute, Derived) and not isinstance(space.attribute(attribute.source), Real):
        return attribute.source
    return name


def all_columns(features: Iterable[Feature]) -> frozenset[str]:
    """Return the columns that at least one of the features depends on."""
    return frozenset[str]().union(*(feature.columns for feature in features))


def nonlinear(space: FeatureSpace, feature: Feature, where: str) -> Feature:
    """Return an arbitrary function of one feature; it must depend on at most one finite column."""
    return joint(space, [feature], where)


def joint(space: FeatureSpace, features: Sequence[Feature], where: str) -> Feature:
    """Return an arbitrary function of features; they must depend on at most one finite column."""
    columns = all_columns(features)
    roundings = max((feature.roundings for feature in features), default=0) + NONLINEAR_ROUNDINGS
    if any(feature.opaque for feature in features):
        return Feature(tabular=columns, opaque=True, roundings=roundings, local=columns)
    if len(columns) > 1:
        raise NetworkError(interaction_message(where, quoted(columns)))
    for name in columns:
        attribute = space.attribute(name)
        if isinstance(attribute, Real):
            raise NetworkError(nonlinear_message(where, name, example(attribute)))
    return Feature(tabular=columns, roundings=roundings)


def weighted_sum(features: Iterable[Feature], *, magnitude: float, roundings: int) -> Feature:
    """Return a weighted sum of features."""
    parts = list(features)
    tabular = frozenset[str]().union(*(part.tabular for part in parts))
    linear = frozenset[str]().union(*(part.linear for part in parts)) - tabular
    opaque = any(part.opaque for part in parts)
    roundings += max((part.roundings for part in parts), default=0)
    local = frozenset[str]().union(*(part.local for part in parts))
    return Feature(linear, tabular, opaque, magnitude, roundings, local)


def interaction_message(where: str, columns: str) -> str:
    """Return the message for a step whose output is not additive."""
    return (
        f"{where} makes an interaction of columns: got a joint function of {columns}; expected a "
        "sum of functions of one column each; remove the interaction, or merge the columns into "
        "one category"
    )


def nonlinear_message(where: str, name: str, example: str) -> str:
    """Return the message for a step that is not linear in a column with too many values."""
    hint = f" ({example})" if example else ""
    return (
        f"{where} is not linear in {name!r}: got a column that becomes neither a slope nor a "
        f"table; expected a linear step or a finite column; declare a step for it{hint}, which "
        "makes it finite, or only scale it"
    )


def example(attribute: Real) -> str:
    """Return a schema line that declares a step for a real column."""
    step = 10.0 ** len(str(int(max(1.0, (attribute.high - attribute.low) / 1000)))) / 10
    return (
        f'{toml_key(attribute.name)} = {{ type = "number", min = {attribute.low:g}, '
        f"max = {attribute.high:g}, step = {step:g} }}"
    )


def quoted(names: Iterable[str]) -> str:
    """Return sorted names in quotes, joined as in a sentence."""
    return joined(repr(name) for name in sorted(names))
