"""The relation of similar people: other numbers may differ, too, within a tolerance.

It is no equivalence: a counterpart's counterparts may be twice as far away. So people have no key,
and no fair decisions exist. Questions about one person are asked over a space of their own, in
which the tolerated columns are sensitive within the tolerance.
"""

import hashlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np

from feta.arrays import Counts, Flags, Matrix, Vector
from feta.errors import EngineError, SchemaError, unknown_choice
from feta.space.attribute import Attribute, Integer, Levels, Real
from feta.space.axis import Axis
from feta.space.feature_space import FeatureSpace


@dataclass(frozen=True, eq=False)
class Similar:
    """Counterparts have any sensitive values, and other numbers within these distances.

    A distance includes its end, and is exact: `{"income": 500}` relates 1,000 and 1,500.
    """

    distances: Mapping[str, float]
    space: FeatureSpace | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not self.distances:
            raise SchemaError(
                'no distances: expected one or more, such as { "income": 500 }; without them, the '
                "default relation is the same"
            )
        for name, distance in self.distances.items():
            number = isinstance(distance, int | float) and not isinstance(distance, bool)
            if not number or not 0 < distance < math.inf or _is_rounded(distance):
                raise SchemaError(
                    f"invalid distance for {name!r}: got {distance!r}; expected a finite number "
                    "above 0"
                )
        exact = {name: float(distance) for name, distance in sorted(self.distances.items())}
        object.__setattr__(self, "distances", exact)

    def over(self, space: FeatureSpace) -> "Similar":
        """Return the relation among the people of a space."""
        numbers = [a.name for a in space.attributes if isinstance(a, Integer | Levels | Real)]
        for name in self.distances:
            if name not in numbers:
                problem = unknown_choice(name, numbers)
                raise SchemaError(f"a distance needs a column with numbers: {problem}")
            if getattr(space.attribute(name), "missing", False):
                raise SchemaError(
                    f"a distance needs a column without missing values: got {name!r}; expected one "
                    "that is never missing; a missing value has no distance"
                )
        # A sensitive column varies freely, as also in a model with other sensitive columns.
        return Similar(self.distances, space)

    def check(self, space: FeatureSpace) -> None:
        """Raise for distances of sensitive columns, which vary freely."""
        for name in self.over(space).distances:
            if space.is_sensitive(space.attribute(name)):
                raise SchemaError(
                    f"a distance for a sensitive column: got {name!r}; expected other columns, "
                    "because sensitive ones have any values; remove it"
                )

    def local(self, person: Vector) -> FeatureSpace:
        """Return the space of one person's counterparts: what may differ is sensitive."""
        attributes = tuple(self._local(one, person) for one in self._space.attributes)
        return FeatureSpace(attributes)

    def _local(self, attribute: Attribute, person: Vector) -> Attribute:
        distance = self.distances.get(attribute.name)
        if distance is None or self._space.is_sensitive(attribute):
            return attribute
        own = Fraction(float(person[self._space.columns_of(attribute).start]))
        low, high = own - Fraction(distance), own + Fraction(distance)
        match attribute:
            case Integer(low=lowest, high=highest):
                ends = max(lowest, math.ceil(low)), min(highest, math.floor(high))
                return replace(attribute, low=ends[0], high=ends[1], sensitive=True)
            case Levels(numbers=numbers):
                near = tuple(number for number in numbers if low <= Fraction(number) <= high)
                return replace(attribute, numbers=near, sensitive=True)
            case Real(low=lowest, high=highest):
                first = max(lowest, _at_least(low))
                return replace(
                    attribute, low=first, high=min(highest, -_at_least(-high)), sensitive=True
                )
        raise AssertionError(attribute)  # `over` accepts numbers only

    @property
    def _space(self) -> FeatureSpace:
        assert self.space is not None  # `over` sets it
        return self.space

    @property
    def fingerprint(self) -> str:
        """A digest of the distances."""
        text = repr(sorted(self.distances.items()))
        return f"similar {hashlib.sha256(text.encode()).hexdigest()}"

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The sensitive attributes; the others depend on the person."""
        return self._space.axes

    @property
    def finite(self) -> bool:
        """False: counterparts are not listed."""
        return False

    @property
    def complete(self) -> bool:
        """False: counterparts also differ in other columns."""
        return False

    @property
    def enclosing(self) -> None:
        """None: counterparts also differ in other columns."""
        return

    @property
    def has_key(self) -> bool:
        """False: a counterpart's counterparts may be too far away."""
        return False

    @property
    def moving(self) -> Flags:
        """Flags of the columns in which counterparts may differ."""
        space = self._space
        flags = np.array(space.sensitive_columns)
        for attribute in space.attributes:
            if getattr(attribute, "source", attribute.name) in self.distances:
                flags[space.columns_of(attribute)] = True
        return flags

    @property
    def separated(self) -> None:
        """None: counterparts are not listed."""
        return

    @property
    def reads_sensitive(self) -> bool:
        """False: there is no key."""
        return False

    def obstacle(self, column: str) -> str:
        """Return nothing: the limits do not matter."""
        del column
        return ""

    def reasons(self, person: Vector, counterpart: Vector) -> tuple[str, ...]:
        """Return nothing: all columns within their distances may differ."""
        del person, counterpart
        return ()

    @property
    def counts_all_if_none(self) -> bool:
        """False: nobody votes."""
        return False

    @property
    def adjective(self) -> str:
        """Empty: any sensitive values are compared."""
        return ""

    @property
    def sentences(self) -> tuple[str, ...]:
        """Who is compared with whom, in words."""
        listed = ", ".join(f"{name} by up to {size:g}" for name, size in self.distances.items())
        names = ", ".join(axis.attribute.name for axis in self.axes)
        return (
            f"Counterparts have any values of {names}, and may also differ in {listed}. Their "
            "counterparts are others, so no fair decisions exist.",
        )

    @property
    def stored(self) -> dict[str, Any]:
        """What a file stores."""
        return {"kind": "similar", "similar": dict(self.distances)}

    @property
    def size(self) -> int:
        """Raise: counterparts are not listed."""
        return _not_listed()

    def assignment_ids(self, person: Vector) -> Counts | None:
        """Raise: counterparts are not listed."""
        return _not_listed(person)

    def count(self, person: Vector) -> int:
        """Raise: counterparts are not listed."""
        return _not_listed(person)

    def counterpart(self, person: Vector, assignment_id: int) -> Vector:
        """Raise: counterparts are not listed."""
        return _not_listed(person, assignment_id)

    def moved(self, person: Vector, assignment_ids: Counts) -> Matrix:
        """Raise: counterparts are not listed."""
        return _not_listed(person, assignment_ids)

    def combinations(self, assignment_ids: Counts) -> Counts:
        """Raise: counterparts are not listed."""
        return _not_listed(assignment_ids)

    def counterparts(self, person: Vector) -> Iterator[Matrix]:
        """Raise: counterparts are not listed."""
        return _not_listed(person)

    def keys(self, people: Matrix) -> list[bytes]:
        """Raise: there are no keys."""
        return _not_listed(people)

    def admits(self, people: Matrix) -> Flags:
        """Return True for everybody."""
        return np.ones(len(people), dtype=bool)

    def related(self, person: Vector, other: Vector) -> bool:
        """Return whether two people differ in no more than the relation allows, exactly."""
        space = self._space
        for attribute in space.attributes:
            columns = space.columns_of(attribute)
            source = getattr(attribute, "source", attribute.name)
            if space.is_sensitive(attribute):
                continue
            distance = self.distances.get(source)
            if distance is None and (person[columns] != other[columns]).any():
                return False
            if distance is not None and source == attribute.name:
                pair = (Fraction(float(row[columns.start])) for row in (person, other))
                if abs(next(pair) - next(pair)) > Fraction(distance):
                    return False
        return True


def _is_rounded(number: float) -> bool:
    """Return whether float64 cannot hold a number."""
    try:
        return Fraction(float(number)) != Fraction(number)
    except OverflowError:
        return True


def _at_least(number: Fraction) -> float:
    """Return the smallest float64 that is not below a number; at most the largest one."""
    try:
        nearest = float(number)
    except OverflowError:
        return math.copysign(float(np.finfo(np.float64).max), number)
    return nearest if Fraction(nearest) >= number else float(np.nextafter(nearest, math.inf))


def _not_listed(*arguments: object) -> NoReturn:
    del arguments
    raise EngineError(NO_KEY)


NO_KEY = (
    "the relation Similar has no key: a counterpart's counterparts may be too far away, so they "
    "are not counted, and no fair decision exists; expected the default relation or constraints; "
    "use verify, worst or feta.share_unfair"
)
