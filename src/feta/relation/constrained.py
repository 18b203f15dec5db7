"""The relation of plausible people: counterparts share columns, and violate no constraint."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np

from feta.arrays import Counts, Flags, Matrix, Vector
from feta.conditions.condition import Condition, sooner
from feta.conditions.evaluate import Cells, attribute_cells, cells_of, evaluate
from feta.conditions.rows import Narrowing
from feta.errors import SchemaError
from feta.relation.all_sensitive_values import AllSensitiveValues
from feta.relation.constraints import Constraint, read_constraints
from feta.relation.listed_ids import ListedIds
from feta.relation.protocol import Relation
from feta.space.axis import Axis
from feta.space.feature_space import FeatureSpace
from feta.space.lattice import BLOCK

# Which combinations count for shared columns with which none is plausible, or none has a vote.
IfNone = Literal["refuse", "all"]
IF_NONE: tuple[IfNone, ...] = ("refuse", "all")

# Flags of combinations are listed per person, so they must fit in memory.
MAX_COMBINATIONS = 2**24

# People who are looked up in the list of combinations, instead of evaluating all conditions.
FEW = 2


@dataclass(frozen=True, eq=False)
class Constrained:
    """Only plausible combinations of sensitive values: those that violate no constraint.

    The key is the shared columns. A person whose own values are implausible is nobody's
    counterpart, and gets the fair decision of the plausible people with the same shared columns. A
    comparison with a missing cell violates nothing. For shared columns without a plausible
    combination, fair decisions are refused, or, with `if_none="all"`, made over all combinations.
    """

    constraints: tuple[Constraint, ...]
    if_none: IfNone = "refuse"
    space: FeatureSpace | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not self.constraints:
            raise SchemaError("no constraints: expected one or more")
        if self.if_none not in IF_NONE:
            raise SchemaError(f"invalid if_none: got {self.if_none!r}; expected 'refuse' or 'all'")

    @classmethod
    def of(
        cls, space: FeatureSpace, *constraints: str | Mapping[str, Any], if_none: IfNone = "refuse"
    ) -> "Constrained":
        """Return the relation with these conditions and entries, as `[[constraints]]` has them.

        Examples
        --------
        >>> from feta import Categorical, Integer
        >>> space = FeatureSpace((
        ...     Integer("age", 14, 90, sensitive=True),
        ...     Categorical("marital", ("never", "married"), sensitive=True),
        ...     Integer("years", 0, 70),
        ... ))
        >>> relation = Constrained.of(
        ...     space,
        ...     "age - years >= 14",
        ...     {"forbidden": {"marital": "married", "age": [14, 17]}},
        ... )
        >>> relation.count(space.encode({"age": 40, "marital": "married", "years": 20})[0])
        114
        """
        entries = [{"condition": one} if isinstance(one, str) else one for one in constraints]
        relation = cls(read_constraints(entries, space.attributes), if_none)
        relation.check(space)
        return relation.over(space)

    def over(self, space: FeatureSpace) -> "Constrained":
        """Return the relation among the people of a space."""
        for axis in space.axes:
            if axis.real:
                raise SchemaError(
                    f"constraints need finitely many sensitive values: got {axis.attribute.name!r},"
                    " a real number; declare it integer, or give a step"
                )
        if space.lattice.size > MAX_COMBINATIONS:
            raise SchemaError(
                "too many combinations of sensitive values for constraints: got "
                f"{space.lattice.size:,}; expected at most {MAX_COMBINATIONS:,}; narrow the "
                "sensitive domains"
            )
        names = {attribute.name for attribute in space.attributes}
        for constraint in self.constraints:
            unknown = sorted(constraint.columns - names)
            if unknown:
                raise SchemaError(
                    f"unknown column in a constraint: got {unknown[0]!r}; expected columns of the "
                    f"space; it is in {constraint.words!r}"
                )
        return Constrained(self.constraints, self.if_none, space)

    def check(self, space: FeatureSpace) -> None:
        """Raise for constraints that exclude nothing, or everybody, whoever the person is."""
        sensitive = {a.name for a in space.attributes if space.is_sensitive(a)}
        for constraint in self.constraints:
            if not constraint.columns & sensitive:
                raise SchemaError(
                    f"a constraint reads no sensitive column: got {constraint.words!r}; expected "
                    "one that tells which sensitive values are plausible; remove it"
                )
        relation = self.over(space)
        alone = [one for one in self.constraints if one.columns <= sensitive]
        conditions = [one.condition for one in alone]
        if alone and not relation._flags(conditions, space_cells(space, [])).any():  # noqa: SLF001 - own
            words = "; ".join(one.words for one in alone)
            raise SchemaError(
                "contradictory constraints: no combination of sensitive values satisfies all of "
                f"them; got {words}"
            )

    @property
    def _space(self) -> FeatureSpace:
        assert self.space is not None  # `over` sets it
        return self.space

    @cached_property
    def fingerprint(self) -> str:
        """A digest of the conditions, in any order, and of what happens if none is plausible."""
        conditions = sorted(repr(constraint.condition) for constraint in self.constraints)
        text = "\n".join([self.if_none, *conditions])
        return f"constrained {hashlib.sha256(text.encode()).hexdigest()}"

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
        """False: implausible assignments give no counterpart."""
        return False

    @cached_property
    def enclosing(self) -> AllSensitiveValues:
        """The relation with all assignments, which have the same ids."""
        return AllSensitiveValues(self._space)

    @property
    def has_key(self) -> bool:
        """True: the shared columns are the key."""
        return True

    def local(self, person: Vector) -> None:
        """Return None: counterparts differ in the sensitive attributes only."""
        del person

    @property
    def moving(self) -> Flags:
        """Flags of the columns in which counterparts may differ."""
        return self._space.sensitive_columns

    @property
    def separated(self) -> None:
        """None: nothing moves along."""
        return

    @property
    def reads_sensitive(self) -> bool:
        """False: the shared columns are the key."""
        return False

    def obstacle(self, column: str) -> str:
        """Return nothing: conditions hold for all numbers."""
        del column
        return ""

    def reasons(self, person: Vector, counterpart: Vector) -> tuple[str, ...]:
        """Return nothing: nothing moves along."""
        del person, counterpart
        return ()

    @property
    def counts_all_if_none(self) -> bool:
        """Whether all assignments vote where no plausible one has a vote."""
        return self.if_none == "all"

    @property
    def adjective(self) -> str:
        """Which combinations of sensitive values are compared."""
        return "plausible"

    @property
    def sentences(self) -> tuple[str, ...]:
        """Who is compared with whom, in words."""
        names = [axis.attribute.name for axis in self.axes]
        listed = "; ".join(constraint.words for constraint in self.constraints)
        lines = [
            f"Counterparts agree on all other columns, and have a plausible combination of "
            f"{', '.join(names)}. Plausible means: {listed}."
        ]
        if self.if_none == "all":
            lines.append("Where no combination is plausible, all of them are compared.")
        if self.informative:
            lines.append(
                "The constraints relate sensitive columns to "
                f"{', '.join(self.informative)}: who has which plausible combinations follows from "
                "these other columns, so they can re-infer sensitive values, and fair decisions "
                "may depend on them."
            )
        return tuple(lines)

    @property
    def informative(self) -> tuple[str, ...]:
        """The names of the shared columns that the constraints read, in order."""
        return tuple(attribute.name for attribute in self._read)

    @property
    def stored(self) -> dict[str, Any]:
        """What a file stores."""
        entries = [dict(constraint.entry) for constraint in self.constraints]
        return {"kind": "constrained", "constraints": entries, "if_none": self.if_none}

    @property
    def size(self) -> int:
        """The number of assignments, plausible or not."""
        return self._space.lattice.size

    def assignment_ids(self, person: Vector) -> Counts:
        """Return the ids of the plausible assignments, in ascending order."""
        return self._ids_by_values(person[self._read_columns].tobytes(), person)

    def count(self, person: Vector) -> int:
        """Return the number of a person's counterparts."""
        return len(self.assignment_ids(person))

    def counterpart(self, person: Vector, assignment_id: int) -> Vector:
        """Return the person's counterpart with this assignment."""
        return self._space.lattice.counterpart(person, assignment_id)

    def moved(self, person: Vector, assignment_ids: Counts) -> Matrix:
        """Return the person's counterparts with these assignments, one row each."""
        rows = np.repeat(np.asarray(person)[None, :], len(assignment_ids), axis=0)
        return self._space.lattice.moved(rows, assignment_ids)

    def combinations(self, assignment_ids: Counts) -> Counts:
        """Return the ids themselves: an assignment is a combination of sensitive values."""
        return assignment_ids

    def counterparts(self, person: Vector) -> Iterator[Matrix]:
        """Yield all counterparts of a person in blocks."""
        ids = self.assignment_ids(person)
        for start in range(0, len(ids), BLOCK):
            part = ids[start : start + BLOCK]
            rows = np.repeat(np.asarray(person)[None, :], len(part), axis=0)
            yield self._space.lattice.moved(rows, part)

    def keys(self, people: Matrix) -> list[bytes]:
        """Return the shared columns of each person as bytes."""
        return self.enclosing.keys(people)

    def admits(self, people: Matrix) -> Flags:
        """Return who violates no constraint."""
        if len(people) <= FEW:  # their combinations are probably cached
            own = self._space.lattice.assignment_ids(people).tolist()
            listed = [self.assignment_ids(person) for person in people]
            pairs = zip(own, listed, strict=True)
            return np.array([_contains(ids, number) for number, ids in pairs], dtype=bool)
        cells = cells_of(self._space, people)
        plausible = np.ones(len(people), dtype=bool)
        for constraint in self.constraints:
            plausible &= ~evaluate(constraint.condition, cells).false
        if self.if_none == "all":
            for row in np.flatnonzero(~plausible).tolist():
                plausible[row] = self.count(people[row]) == self.size
        return plausible

    def related(self, person: Vector, other: Vector) -> bool:
        """Return whether both people are plausible and have the same key."""
        pair = np.stack([person, other])
        first, second = self.keys(pair)
        return first == second and bool(self.admits(pair).all())

    @cached_property
    def _read(self) -> tuple[Any, ...]:
        """The shared attributes that constraints read, in order."""
        names = frozenset().union(*(constraint.columns for constraint in self.constraints))
        space = self._space
        return tuple(a for a in space.attributes if a.name in names and not space.is_sensitive(a))

    @cached_property
    def _read_columns(self) -> Counts:
        ranges = [range(*self._space.columns_of(a).indices(self._space.width)) for a in self._read]
        return np.array([column for one in ranges for column in one], dtype=np.int64)

    @cached_property
    def _cache(self) -> ListedIds:
        return ListedIds()

    def _ids_by_values(self, values: bytes, person: Vector) -> Counts:
        """Return the plausible ids for these values of the shared columns that constraints read."""
        known = self._cache.by_key.get(values)
        if known is None:
            cells = space_cells(
                self._space, [(a, person[self._space.columns_of(a)]) for a in self._read]
            )
            conditions = [narrowing.among(cells) for narrowing in self._conditions]
            flags = self._always & self._flags(conditions, cells)
            if self.if_none == "all" and not flags.any():
                flags[:] = True
            known = self._cache.add(values, np.flatnonzero(flags))
        return known

    @cached_property
    def _conditions(self) -> list[Narrowing]:
        """The conditions that depend on the person; of these, shared columns are read first."""
        shared = set(self.informative)
        dependent = [one for one in self.constraints if one.columns & shared]
        return [Narrowing.of(sooner(one.condition, shared), self.informative) for one in dependent]

    @cached_property
    def _always(self) -> Flags:
        """The assignments that violate no constraint between sensitive columns."""
        shared = set(self.informative)
        alone = [one.condition for one in self.constraints if not one.columns & shared]
        return self._flags(alone, space_cells(self._space, []))

    def _flags(self, conditions: Sequence[Condition], cells: dict[str, Cells]) -> Flags:
        """Flag the assignments that violate none of these conditions."""
        flags = np.ones([len(axis) for axis in self._space.lattice.axes], dtype=bool)
        for condition in conditions:
            flags &= ~evaluate(condition, cells).false
        return flags.ravel()


def _contains(ids: Counts, number: int) -> bool:
    """Return whether sorted ids contain one."""
    place = int(np.searchsorted(ids, number))
    return place < len(ids) and int(ids[place]) == number


def violations(relation: Relation, people: Matrix) -> list[tuple[str, int]]:
    """Return the words of each constraint, and the number of people who violate it."""
    if not isinstance(relation, Constrained):
        return []
    cells = cells_of(relation.enclosing.space, people)
    return [
        (constraint.words, int(evaluate(constraint.condition, cells).false.sum()))
        for constraint in relation.constraints
    ]


def space_cells(space: FeatureSpace, shared: list[tuple[Any, Vector]]) -> dict[str, Cells]:
    """Return the cells of all assignments, one dimension per axis, and of one person's columns."""
    axes = space.lattice.axes
    cells: dict[str, Cells] = {}
    for index, axis in enumerate(axes):
        shape = [1] * len(axes)
        shape[index] = len(axis)
        codes, width = axis.codes(np.arange(len(axis))), 0
        for attribute in (axis.attribute, *axis.derived):
            cells[attribute.name] = _shaped(
                attribute_cells(attribute, codes[:, width : width + attribute.width]), shape
            )
            width += attribute.width
    for attribute, row in shared:
        cells[attribute.name] = _shaped(attribute_cells(attribute, row[None, :]), [1] * len(axes))
    return cells


def _shaped(cells: Cells, shape: list[int]) -> Cells:
    return Cells(cells.numbers.reshape(shape), cells.missing.reshape(shape), cells.values)
