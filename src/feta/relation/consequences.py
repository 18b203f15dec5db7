"""The relation of a structural causal model: other columns move along with the sensitive ones.

A descendant of the sensitive columns has an equation: effects of its parents, plus noise that is
the person's own. A counterpart has other sensitive values and the same noise (abduction, action,
prediction). Everything is counted in steps of the descendants, in integers, so the noise is exact.
The key is the columns that do not move, and the noise.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any, Literal, cast

import numpy as np

from feta.arrays import Counts, Flags, Matrix, Vector
from feta.errors import DomainError, EngineError, SchemaError
from feta.relation.bands import CompiledMap
from feta.relation.effects import (
    CompiledEffect,
    Equation,
    indexed,
    read_equations,
    step_of,
)
from feta.relation.listed_ids import ListedIds
from feta.relation.separated import Separated, separated
from feta.relation.words import equation_words
from feta.space.attribute import Attribute, Categorical, Derived, Integer, Levels, Real
from feta.space.axis import Axis
from feta.space.feature_space import FeatureSpace
from feta.space.lattice import BLOCK

# What happens to a counterpart whose descendant leaves its domain.
Outside = Literal["leave out", "clip"]
OUTSIDE: tuple[Outside, ...] = ("leave out", "clip")

# Counterparts are listed per person, so they must fit in memory.
MAX_COUNTERPARTS = 2**24

# Numbers of counterparts that are cached for the people who are asked about.
MAX_CACHED = 2**22

# People whose counterparts are known without their noise.
MAX_LATEST = 1024

# The noise of a missing value: it stays missing.
MISSING = np.iinfo(np.int64).min


@dataclass(frozen=True, slots=True, eq=False)
class _Descendant:
    """An equation over a space."""

    attribute: Categorical | Integer | Levels
    n_numbers: int  # values that are not missing
    effects: tuple[CompiledEffect, ...]
    mapped: CompiledMap | None

    def effect(self, values: Mapping[str, Any]) -> Counts:
        """Return the sum of the effects, in steps."""
        return sum((one.at(values) for one in self.effects), np.zeros(1, dtype=np.int64))


@dataclass(frozen=True, slots=True, eq=False)
class _Moved:
    """The counterparts of one key: their ids, and the index of each descendant's value."""

    ids: Counts
    indices: dict[str, Counts]


@dataclass(frozen=True, eq=False)
class Consequences:
    """Counterparts have other sensitive values, and descendants that follow with the same noise.

    Counterparts whose descendants would leave their domain do not exist. With `outside="clip"`
    they have the end of the domain, and with quantile maps several values become one. Then a
    counterpart's counterparts may be others, so there is no key and no fair decision.
    """

    equations: tuple[Equation, ...]
    outside: Outside = "leave out"
    space: FeatureSpace | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not self.equations:
            raise SchemaError("no equations: expected one or more")
        if self.outside not in OUTSIDE:
            raise SchemaError(
                f"invalid outside: got {self.outside!r}; expected 'leave out' or 'clip'"
            )

    @classmethod
    def of(
        cls, space: FeatureSpace, *equations: Mapping[str, Any], outside: Outside = "leave out"
    ) -> "Consequences":
        """Return the relation with these entries, as `[[consequences.equations]]` has them.

        Examples
        --------
        >>> from feta import Categorical, Integer
        >>> space = FeatureSpace((
        ...     Categorical("sex", ("female", "male"), sensitive=True),
        ...     Integer("income", 0, 500),
        ... ))
        >>> relation = Consequences.of(
        ...     space, {"column": "income", "shifts": {"sex": {"male": 30}}}
        ... )
        >>> person = space.encode({"sex": "female", "income": 200})[0]
        >>> [space.decode(row)["income"] for row in relation.moved(person, np.array([0, 1]))]
        [200, 230]
        """
        relation = cls(read_equations([*equations], space.attributes), outside)
        relation.check(space)
        return relation.over(space)

    def over(self, space: FeatureSpace) -> "Consequences":
        """Return the relation among the people of a space."""
        for axis in space.axes:
            if axis.real:
                raise SchemaError(
                    "consequences need finitely many sensitive values: got "
                    f"{axis.attribute.name!r}, a real number; declare it integer, or give a step"
                )
        relation = Consequences(self.equations, self.outside, space)
        if relation.size > MAX_COUNTERPARTS:
            raise SchemaError(
                f"too many counterparts for consequences: got {relation.size:,}; expected at most "
                f"{MAX_COUNTERPARTS:,}; narrow the sensitive domains"
            )
        assert relation._descendants  # raises for invalid equations
        return relation

    def check(self, space: FeatureSpace) -> None:
        """Raise for equations that have no consequence of a sensitive column."""
        sensitive = {a.name for a in space.attributes if space.is_sensitive(a)}
        moving = set(sensitive)
        for equation in self._ordered(space):
            if not moving & set(equation.parents):
                raise SchemaError(
                    f"the equation of {equation.column!r} reads no sensitive column and no "
                    f"descendant of one: got {', '.join(equation.parents)}; remove it"
                )
            if equation.mapped is not None and not set(equation.parents) <= sensitive:
                raise SchemaError(
                    f"equation of {equation.column!r}: groups are defined by sensitive columns: "
                    f"got {', '.join(equation.parents)}; expected some of {sorted(sensitive)}"
                )
            moving.add(equation.column)
        self.over(space)

    @property
    def _space(self) -> FeatureSpace:
        assert self.space is not None  # `over` sets it
        return self.space

    def _ordered(self, space: FeatureSpace) -> list[Equation]:
        """Return the equations, parents first; raise for a cycle."""
        waiting = {equation.column: equation for equation in self.equations}
        for equation in self.equations:
            for name in equation.parents:
                space.attribute(name)
            if space.is_sensitive(space.attribute(equation.column)):
                raise SchemaError(
                    f"an equation of a sensitive column: got {equation.column!r}; expected other "
                    "columns, because counterparts have any sensitive values; remove it"
                )
        ordered: list[Equation] = []
        while waiting:
            ready = [one for one in waiting.values() if not waiting.keys() & set(one.parents)]
            if not ready:
                raise SchemaError(
                    f"the equations form a cycle: got {_cycle(waiting)}; expected causes before "
                    "consequences; remove one of these effects"
                )
            ordered += ready
            for one in ready:
                del waiting[one.column]
        return ordered

    @cached_property
    def _descendants(self) -> dict[str, _Descendant]:
        """The equations over the space, by column, parents first."""
        space, found = self._space, {}
        for equation in self._ordered(space):
            attribute = space.attribute(equation.column)
            if equation.mapped is not None:
                assert isinstance(attribute, Categorical)  # it was read so
                mapped = CompiledMap.of(equation.mapped, attribute, space)
                found[equation.column] = _Descendant(attribute, attribute.n_values, (), mapped)
                continue
            if not isinstance(attribute, Integer | Levels | Real):
                raise SchemaError(
                    f"equation of {equation.column!r}: shifts, slopes and tables need a number: "
                    "got a category; expected bands or quantiles"
                )
            step = step_of(attribute)
            assert not isinstance(attribute, Real)  # it has no step
            effects = tuple(CompiledEffect.of(one, step, space) for one in equation.effects)
            n_numbers = attribute.n_values - attribute.missing
            found[equation.column] = _Descendant(attribute, n_numbers, effects, None)
        return found

    @cached_property
    def _choices(self) -> dict[str, int]:
        """The descendants of whose values several may be in the same band, and how many."""
        return {
            name: one.attribute.n_values
            for name, one in self._descendants.items()
            if one.mapped is not None and one.mapped.moves is None
        }

    @cached_property
    def fingerprint(self) -> str:
        """A digest of the equations, in any order, and of what happens outside the domain."""
        entries = sorted(
            json.dumps(dict(one.entry), sort_keys=True, ensure_ascii=True) for one in self.equations
        )
        text = "\n".join([self.outside, *entries])
        return f"consequences {hashlib.sha256(text.encode()).hexdigest()}"

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The sensitive attributes; all of them are finite."""
        return self._space.axes

    @property
    def finite(self) -> bool:
        """True: `over` accepts only finite sensitive attributes."""
        return True

    @property
    def complete(self) -> bool:
        """False: counterparts also differ in descendants."""
        return False

    @property
    def enclosing(self) -> None:
        """None: counterparts also differ in descendants."""
        return

    @property
    def moving(self) -> Flags:
        """Flags of the columns in which counterparts may differ."""
        return ~self._fixed

    @cached_property
    def separated(self) -> Separated | None:
        """The counterparts as sums over the sensitive columns, if they are; for kernels."""
        if self._choices or not self.has_key:
            return None
        effects = {name: list(one.effects) for name, one in self._descendants.items()}
        return separated(self._space, effects)

    @property
    def has_key(self) -> bool:
        """Whether counterparts of counterparts are counterparts: no clipping, no quantile map."""
        maps = (one.mapped for one in self.equations if one.mapped is not None)
        return self.outside != "clip" and all(one.kind == "bands" for one in maps)

    @property
    def reads_sensitive(self) -> bool:
        """True: the noise is recovered from the sensitive columns."""
        return True

    def local(self, person: Vector) -> None:
        """Return None: counterparts are listed."""
        del person

    def obstacle(self, column: str) -> str:
        """Return why numbers of a column must not leave its limits; empty if they may."""
        if column in self._descendants:
            return "the limits of a descendant say which counterparts exist"
        if any(column in equation.parents for equation in self.equations):
            return "an equation of [consequences] reads this column"
        return ""

    @property
    def counts_all_if_none(self) -> bool:
        """False: the person is a counterpart."""
        return False

    @property
    def adjective(self) -> str:
        """Which combinations of sensitive values are compared."""
        return "possible"

    @property
    def sentences(self) -> tuple[str, ...]:
        """Who is compared with whom, in words."""
        names = ", ".join(axis.attribute.name for axis in self.axes)
        moved = ", ".join(one.column for one in self.equations)
        listed = " ".join(equation_words(one) for one in self.equations)
        lines = [
            f"Counterparts have any values of {names}, and {moved} move along by the equations of "
            f"[consequences], with the person's own noise. All other columns are equal. {listed}"
        ]
        if self.outside == "clip":
            lines.append("A value that would leave its domain becomes the end of the domain.")
        else:
            lines.append(
                "A counterpart with a value that would leave its domain does not exist, and is "
                "left out."
            )
        if self.has_key:
            lines.append(
                "Fair decisions need the sensitive columns, from which the noise is recovered. The "
                "answers are as good as the equations, which no data can prove."
            )
        else:
            lines.append(f"No fair decisions exist: {NO_KEY}.")
        return tuple(lines)

    @property
    def stored(self) -> dict[str, Any]:
        """What a file stores."""
        entries = [dict(one.entry) for one in self.equations]
        return {"kind": "consequences", "equations": entries, "outside": self.outside}

    @cached_property
    def size(self) -> int:
        """The number of assignments: combinations of sensitive values, and of values in bands."""
        return self._space.lattice.size * prod(self._choices.values())

    def combinations(self, assignment_ids: Counts) -> Counts:
        """Return the id of the sensitive values of each assignment."""
        return assignment_ids // prod(self._choices.values())

    def assignment_ids(self, person: Vector) -> Counts:
        """Return the ids of a person's counterparts, in ascending order."""
        return self._moved(person).ids

    def count(self, person: Vector) -> int:
        """Return the number of a person's counterparts; the person is one of them."""
        return len(self.assignment_ids(person))

    def counterpart(self, person: Vector, assignment_id: int) -> Vector:
        """Return the person's counterpart with this assignment."""
        return self.moved(person, np.array([assignment_id]))[0]

    def moved(self, person: Vector, assignment_ids: Counts) -> Matrix:
        """Return the person's counterparts with these assignments.

        An assignment without a counterpart gives the person, so that it proves nothing.
        """
        known = self._moved(person)
        rows = np.repeat(np.asarray(person, dtype=np.float64)[None, :], len(assignment_ids), axis=0)
        if not len(known.ids):
            return rows
        places = np.minimum(np.searchsorted(known.ids, assignment_ids), len(known.ids) - 1)
        exists = np.flatnonzero(known.ids[places] == assignment_ids)
        places, space = places[exists], self._space
        moved = space.lattice.moved(rows[exists], self.combinations(known.ids[places]))
        for name, indices in known.indices.items():
            attribute = self._descendants[name].attribute
            codes = attribute.codes(indices[places])
            moved[:, space.columns_of(attribute)] = codes
            for derived in self._derived.get(name, ()):
                moved[:, space.columns_of(derived)] = derived.derive(codes[:, 0])
        rows[exists] = moved
        return rows

    def counterparts(self, person: Vector) -> Iterator[Matrix]:
        """Yield all counterparts of a person in blocks."""
        ids = self.assignment_ids(person)
        for start in range(0, len(ids), BLOCK):
            yield self.moved(person, ids[start : start + BLOCK])

    def keys(self, people: Matrix) -> list[bytes]:
        """Return the columns that do not move, and the noise, of each person as bytes."""
        if not self.has_key:
            raise EngineError(f"the relation Consequences has no key: {NO_KEY}")
        people = np.asarray(people, dtype=np.float64)
        noise = np.ascontiguousarray(np.stack([*self._noise(people).values()], axis=1))
        fixed = np.ascontiguousarray(people[:, self._fixed] + 0.0)  # −0.0 equals 0.0
        parts = [(array.tobytes(), array.shape[1] * 8) for array in (fixed, noise)]
        return [
            b"".join(content[row * size : (row + 1) * size] for content, size in parts)
            for row in range(len(people))
        ]

    def admits(self, people: Matrix) -> Flags:
        """Return True for everybody: each person has one noise, and is their own counterpart."""
        return np.ones(len(people), dtype=bool)

    def related(self, person: Vector, other: Vector) -> bool:
        """Return whether the second person is a counterpart of the first."""
        if self.has_key:
            first, second = self.keys(np.stack([person, other]))
            return first == second
        ids = self.assignment_ids(person)
        same = self.combinations(ids) == self._space.lattice.assignment_ids(other[None, :])[0]
        return bool((self.moved(person, ids[same]) == other).all(axis=1).any())

    def reasons(self, person: Vector, counterpart: Vector) -> tuple[str, ...]:
        """Return which columns of a counterpart moved along, and why, in words."""
        space, lines = self._space, []
        before, after = space.decode(person), space.decode(counterpart)
        for equation in self.equations:
            name = equation.column
            if before[name] != after[name]:
                lines.append(
                    f"{name} moved from {before[name]} to {after[name]}, because it follows from "
                    f"{' and '.join(equation.parents)} with the same noise"
                )
        return tuple(lines)

    @cached_property
    def _derived(self) -> dict[str, tuple[Derived, ...]]:
        """The bands that follow from each descendant."""
        found: dict[str, tuple[Derived, ...]] = {}
        for attribute in self._space.attributes:
            if isinstance(attribute, Derived) and attribute.source in self._descendants:
                found[attribute.source] = (*found.get(attribute.source, ()), attribute)
        return found

    @cached_property
    def _fixed(self) -> Flags:
        """The columns in which counterparts never differ."""
        fixed = ~self._space.sensitive_columns
        for name, one in self._descendants.items():
            for attribute in (one.attribute, *self._derived.get(name, ())):
                fixed[self._space.columns_of(attribute)] = False
        return fixed

    @cached_property
    def _read(self) -> tuple[Attribute, ...]:
        """The descendants and their parents."""
        names = [*self._descendants]
        names += [name for one in self.equations for name in one.parents]
        return tuple(self._space.attribute(name) for name in dict.fromkeys(names))

    def _values(self, people: Matrix) -> dict[str, Any]:
        """Return the values that the equations read: indices, or numbers; NaN is missing."""
        sensitive = people[:, self._space.sensitive_columns]
        if np.isnan(sensitive).any():
            raise DomainError(
                "the noise cannot be recovered: got rows without sensitive values; expected all "
                "columns, because the relation Consequences recovers each person's noise from "
                "them; encode people with their sensitive columns"
            )
        values: dict[str, Any] = {}
        for attribute in self._read:
            codes = people[:, self._space.columns_of(attribute)]
            if attribute.name in self._descendants or indexed(attribute):
                finite = cast("Categorical | Integer | Levels", attribute)
                values[attribute.name] = finite.indices(codes)
                if not indexed(attribute):  # a slope reads the number
                    values[attribute.name] = _Numbers.of(finite, values[attribute.name])
            else:
                missing = codes[:, 1] == 1 if codes.shape[1] > 1 else np.zeros(len(codes), bool)
                values[attribute.name] = np.where(missing, np.nan, codes[:, 0])
        return values

    def _noise(self, people: Matrix) -> dict[str, Counts]:
        """Return the noise of each descendant: steps, or the index of a band."""
        values = self._values(people)
        noise: dict[str, Counts] = {}
        for name, one in self._descendants.items():
            indices = values[name]
            own = indices.indices if isinstance(indices, _Numbers) else indices
            if one.mapped is not None:
                noise[name] = one.mapped.bands[one.mapped.group(values), own]
            else:
                steps = own - one.effect(values)
                noise[name] = np.where(own < one.n_numbers, steps, MISSING)
        return noise

    @cached_property
    def _cache(self) -> dict[bytes, _Moved]:
        return {}

    @cached_property
    def _lists(self) -> ListedIds:
        return ListedIds()

    def _moved(self, person: Vector) -> _Moved:
        """Return the counterparts of a person, cached by what determines them."""
        row = np.asarray(person, dtype=np.float64)[None, :]
        own = row.tobytes()
        known = self._latest.get(own)
        if known is None:
            if len(self._latest) >= MAX_LATEST:
                self._latest.clear()
            known = self._latest[own] = self._moved_by_key(person, row)
        return known

    @cached_property
    def _latest(self) -> dict[bytes, _Moved]:
        """The people of the last questions, because one question asks several times."""
        return {}

    def _moved_by_key(self, person: Vector, row: Matrix) -> _Moved:
        noise = {name: steps[0] for name, steps in self._noise(row).items()}
        parts = [person[self._space.columns_of(one)] + 0.0 for one in self._parents]
        steps = [np.int64(one).tobytes() for one in noise.values()]
        key = b"".join([*steps, *(part.tobytes() for part in parts)])
        key = key if self.has_key else row.tobytes()
        known = self._cache.get(key)
        if known is None:
            known = self._predicted(row, noise, key)
            if len(self._cache) * self.size > MAX_CACHED:
                self._cache.clear()
            self._cache[key] = known
        return known

    @cached_property
    def _parents(self) -> tuple[Attribute, ...]:
        """The parents that counterparts share."""
        space = self._space
        return tuple(
            one
            for one in self._read
            if one.name not in self._descendants and not space.is_sensitive(one)
        )

    def _predicted(self, row: Matrix, noise: Mapping[str, Any], key: bytes) -> _Moved:
        """Return everybody with this noise and the shared columns of a person."""
        space, own = self._space, self._values(row)
        coordinates = np.unravel_index(
            np.arange(self.size), (space.lattice.size, *self._choices.values())
        )
        combinations = coordinates[0].astype(np.int64)
        values: dict[str, Any] = {one.name: own[one.name] for one in self._parents}
        pairs = zip(space.axes, space.lattice.coordinates(combinations), strict=True)
        for axis, at in pairs:
            attribute = cast("Categorical | Integer | Levels", axis.attribute)
            known = indexed(attribute)
            values[attribute.name] = at if known else _Numbers.of(attribute, np.asarray(at))
        chosen = dict(zip(self._choices, coordinates[1:], strict=True))
        exists = np.ones(self.size, dtype=bool)
        indices: dict[str, Counts] = {}
        for name, one in self._descendants.items():
            if one.mapped is not None:
                groups = one.mapped.group(values)
                if one.mapped.moves is None:
                    moved = chosen[name].astype(np.int64)
                    exists &= one.mapped.bands[groups, moved] == noise[name]
                else:
                    start = int(one.mapped.group(own)[0])
                    moved = one.mapped.moves[start, int(own[name][0]), groups]
            elif noise[name] == MISSING:
                moved = np.full(self.size, one.n_numbers, dtype=np.int64)
            else:
                moved = np.broadcast_to(noise[name] + one.effect(values), self.size)
                if self.outside == "clip":
                    moved = np.clip(moved, 0, one.n_numbers - 1)
                else:
                    exists &= (moved >= 0) & (moved < one.n_numbers)
                    moved = np.where(exists, moved, 0)
            indices[name] = np.broadcast_to(moved, self.size)  # shared parents give one value
            known = indexed(one.attribute)
            values[name] = moved if known else _Numbers.of(one.attribute, moved)
        ids = self._lists.add(key, np.flatnonzero(exists))
        return _Moved(ids, {name: one[ids] for name, one in indices.items()})


@dataclass(frozen=True, slots=True, eq=False)
class _Numbers:
    """Values of a column with too many values for tables of effects: slopes read their numbers."""

    indices: Counts
    numbers: Vector

    @classmethod
    def of(cls, attribute: Categorical | Integer | Levels, indices: Counts) -> "_Numbers":
        codes = attribute.codes(np.ravel(indices))
        missing = codes[:, 1] == 1 if codes.shape[1] > 1 else np.zeros(len(codes), bool)
        return cls(indices, np.where(missing, np.nan, codes[:, 0]))

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:  # noqa: ANN401 - numpy's
        del copy
        return np.asarray(self.numbers, dtype=dtype)


def _cycle(waiting: Mapping[str, Equation]) -> str:
    """Return one cycle, such as "a -> b -> a"."""
    name, path = next(iter(waiting)), list[str]()
    while name not in path:
        path.append(name)
        name = next(parent for parent in waiting[name].parents if parent in waiting)
    names = [*path[path.index(name) :], name]
    return " -> ".join(reversed(names))


NO_KEY = (
    "with clip or a quantile map, several values become one, so a counterpart's counterparts may "
    "be others; use verify, worst or feta.share_unfair, or bands, or leave counterparts outside "
    "the domain out"
)
