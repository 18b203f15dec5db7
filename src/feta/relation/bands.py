"""Maps of a category's values, per group of sensitive values: to common bands, or by quantiles.

Bands are an equivalence: counterparts have a value of the same band. A quantile map is none,
because several values of one group may become the same value of another one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import Any, Literal

import numpy as np

from feta.arrays import Counts, Flags
from feta.errors import SchemaError, unknown_choice
from feta.space.attribute import Attribute, Categorical, Integer, Levels, Value
from feta.space.feature_space import FeatureSpace

# Values of a column that divides people into groups.
MAX_GROUPED = 10_000


@dataclass(frozen=True, slots=True)
class MappedGroup:
    """The people with these sensitive values, and their map."""

    when: tuple[tuple[str, tuple[Value, ...]], ...]
    values: tuple[tuple[str, tuple[Value, ...]], ...]  # bands: label and values
    shares: tuple[tuple[Value, Fraction], ...]  # quantiles: values in order, and their shares


@dataclass(frozen=True, slots=True)
class Mapped:
    """The maps of all groups."""

    kind: Literal["bands", "quantiles"]
    groups: tuple[MappedGroup, ...]

    @property
    def columns(self) -> list[str]:
        """The columns that divide people into groups."""
        return [name for group in self.groups for name, _ in group.when]


def read_mapped(kind: str, groups: object, attribute: Attribute) -> Mapped:
    """Read the groups of `bands` or `quantiles`."""
    if not isinstance(attribute, Categorical):
        raise SchemaError(
            f"{kind} need a category: got a number; expected shifts, slopes or tables"
        )
    if not isinstance(groups, list) or not groups:
        raise SchemaError(f"{kind} is not a list of groups: got {groups!r}; expected one or more")
    key = "map" if kind == "bands" else "shares"
    for group in groups:
        if not isinstance(group, Mapping) or set(group) != {"when", key}:
            raise SchemaError(
                f"invalid group of {kind}: got {group!r}; expected when and {key}, such as "
                + (
                    '{ when = { sex = "female" }, map = { low = ["clerk"], high = ["manager"] } }'
                    if kind == "bands"
                    else '{ when = { sex = "female" }, shares = { clerk = 0.7, manager = 0.3 } }'
                )
            )
        for part in ("when", key):
            if not isinstance(group[part], Mapping) or not group[part]:
                raise SchemaError(
                    f"invalid {part} in {kind}: got {group[part]!r}; expected values by name"
                )
    if kind == "bands":
        return Mapped("bands", tuple(_band_group(group, attribute) for group in groups))
    return Mapped("quantiles", tuple(_quantile_group(group, attribute) for group in groups))


def _when(group: Mapping[str, Any]) -> tuple[tuple[str, tuple[Value, ...]], ...]:
    when = []
    for name, cell in group["when"].items():
        cells = tuple(cell) if isinstance(cell, list) else (cell,)
        when.append((str(name), cells))
    return tuple(when)


def _band_group(group: Mapping[str, Any], attribute: Categorical) -> MappedGroup:
    bands: list[tuple[str, tuple[Value, ...]]] = []
    seen: list[Value] = []
    for label, cell in group["map"].items():
        values = tuple(cell) if isinstance(cell, list) else (cell,)
        for value in values:
            _check_value(attribute, value)
        bands.append((str(label), values))
        seen += values
    missing = [value for value in attribute.values if value not in seen]
    if missing or len(set(seen)) != len(seen) or attribute.other:
        problem = f"{missing[0]!r} in no band" if missing else "a value in several bands"
        problem = "a column with other texts" if attribute.other else problem
        raise SchemaError(
            f"the noise of {attribute.name!r} cannot be recovered: got {problem} where "
            f"{_words(group['when'])}; expected every value in exactly one band"
        )
    return MappedGroup(_when(group), tuple(bands), ())


def _quantile_group(group: Mapping[str, Any], attribute: Categorical) -> MappedGroup:
    shares = []
    by_text = {str(value): value for value in attribute.values}
    for text, share in group["shares"].items():
        if text not in by_text:
            raise SchemaError(
                f"unknown value of {attribute.name!r}: {unknown_choice(text, by_text)}"
            )
        number = isinstance(share, int | float) and not isinstance(share, bool)
        if not number or not 0 < share <= 1:
            raise SchemaError(
                f"invalid share of {text!r}: got {share!r}; expected a number above 0, up to 1"
            )
        shares.append((by_text[text], Fraction(repr(float(share)))))
    if len(shares) != len(attribute.values) or sum(share for _, share in shares) != 1:
        raise SchemaError(
            f"invalid shares of {attribute.name!r} where {_words(group['when'])}: got "
            f"{dict(group['shares'])!r}; expected every value, in order, with shares that sum to 1"
        )
    return MappedGroup(_when(group), (), tuple(shares))


def _check_value(attribute: Categorical, value: object) -> None:
    if not any(type(one) is type(value) and one == value for one in attribute.values):
        raise SchemaError(
            f"unknown value of {attribute.name!r}: {unknown_choice(value, attribute.values)}"
        )


def _words(when: Mapping[str, Any]) -> str:
    return " and ".join(f"{name} is {value}" for name, value in when.items())


@dataclass(frozen=True, slots=True, eq=False)
class CompiledMap:
    """The group of each combination of the columns of the groups, and each group's map."""

    columns: tuple[str, ...]
    shape: tuple[int, ...]
    groups: Counts  # by combination
    bands: Counts  # (groups, values); None is a band of its own
    moves: Counts | None  # quantiles: the value in each group, (groups, values, groups)

    @classmethod
    def of(cls, mapped: Mapped, attribute: Categorical, space: FeatureSpace) -> "CompiledMap":
        """Compile the maps; every combination must belong to exactly one group."""
        columns = tuple(dict.fromkeys(mapped.columns))
        finite = [_finite(space.attribute(name)) for name in columns]
        shape = tuple(one.n_values for one in finite)
        members = np.array([_members(group, finite).ravel() for group in mapped.groups])
        counts = members.sum(axis=0)
        wrong = np.flatnonzero(counts != 1)
        if wrong.size:
            place = np.unravel_index(int(wrong[0]), shape)
            record = ", ".join(
                f"{one.name} = {_values(one)[int(at)]}"
                for one, at in zip(finite, place, strict=True)
            )
            raise SchemaError(
                f"equation of {attribute.name!r}: got {counts[wrong[0]]} groups for {record}; "
                "expected every combination of their columns in exactly one group"
            )
        n_values, n_groups = attribute.n_values, len(mapped.groups)
        bands = np.full((n_groups, n_values), -1, dtype=np.int64)
        index = {value: number for number, value in enumerate(attribute.values)}
        groups = np.argmax(members, axis=0).astype(np.int64)
        if mapped.kind == "bands":
            labels = list(dict.fromkeys(label for one in mapped.groups for label, _ in one.values))
            for row, group in enumerate(mapped.groups):
                for label, values in group.values:
                    for value in values:
                        bands[row, index[value]] = labels.index(label)  # type: ignore[index]  # not None
            return cls(columns, shape, groups, bands, None)
        moves = np.tile(np.arange(n_values)[None, :, None], (n_groups, 1, n_groups))
        for row, group in enumerate(mapped.groups):
            ends = accumulate(share for _, share in group.shares)
            for (value, _), end in zip(group.shares, ends, strict=True):
                for column, other in enumerate(mapped.groups):
                    if column != row:
                        target = index[_at_quantile(other, end)]  # type: ignore[index]  # not None
                        moves[row, index[value], column] = target  # type: ignore[index]  # not None
        return cls(columns, shape, groups, bands, moves)

    def group(self, values: Mapping[str, Counts]) -> Counts:
        """Return the group of people with these indices of values."""
        arrays = np.broadcast_arrays(*(values[name] for name in self.columns))
        return np.asarray(self.groups[np.ravel_multi_index(tuple(arrays), self.shape)])


def _at_quantile(group: MappedGroup, end: Fraction) -> Value:
    """Return the first value of a group whose cumulated share reaches a quantile."""
    total = Fraction(0)
    for value, share in group.shares:
        total += share
        if total >= end:
            return value
    raise AssertionError(end)  # shares sum to 1


def _finite(attribute: Attribute) -> Categorical | Integer | Levels:
    if isinstance(attribute, Categorical) or (
        isinstance(attribute, Integer | Levels) and attribute.n_values <= MAX_GROUPED
    ):
        return attribute
    raise SchemaError(
        f"groups need columns with at most {MAX_GROUPED:,} values: got {attribute.name!r}"
    )


def _members(group: MappedGroup, finite: Sequence[Categorical | Integer | Levels]) -> Flags:
    flags = np.ones([one.n_values for one in finite], dtype=bool)
    for name, cells in group.when:
        number = [one.name for one in finite].index(name)
        values = _values(finite[number])
        for cell in cells:
            if not any(_equal(one, cell) for one in values):
                raise SchemaError(f"unknown value of {name!r}: {unknown_choice(cell, values)}")
        shape = [1] * len(finite)
        shape[number] = len(values)
        chosen = [any(_equal(value, cell) for cell in cells) for value in values]
        flags &= np.array(chosen).reshape(shape)
    return flags


def _equal(value: Value, cell: object) -> bool:
    """Return whether a cell of a file is this value; 1, true and "1" are different."""
    numbers = [isinstance(one, int | float) and not isinstance(one, bool) for one in (value, cell)]
    return value == cell and (type(value) is type(cell) or all(numbers))


def _values(attribute: Categorical | Integer | Levels) -> list[Value]:
    codes = attribute.codes(np.arange(attribute.n_values))
    return [attribute.decode(code) for code in codes]
