"""Feature space: attributes in order; converts raw records to rows of numbers and back."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal, Self

import numpy as np

from feta.arrays import Flags, Matrix, Vector, frozen
from feta.errors import DomainError, SchemaError, unknown_choice
from feta.space.attribute import Attribute, Categorical, Derived, Real, Value
from feta.space.axis import Axis
from feta.space.derived_columns import check_source
from feta.space.encode_cells import encode_cells
from feta.space.fingerprint import hash_attributes
from feta.space.infer_schema import infer_attributes
from feta.space.lattice import Lattice
from feta.space.limits import (
    Limits,
    OpenLimits,
    column_magnitudes,
    is_open,
    readable,
)
from feta.space.quick_check import QuickCheck
from feta.space.records import Record, first_repeated, located, named_columns
from feta.space.row_plan import RowPlan

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class FeatureSpace:
    """The attributes a model reads, in its order, and which of them are sensitive.

    Parameters
    ----------
    attributes
        In the order of the network's inputs; at least one of them is sensitive.

    Examples
    --------
    >>> from feta import Categorical, Integer, Real
    >>> space = FeatureSpace((
    ...     Integer("age", 19, 75, sensitive=True),
    ...     Categorical("sex", ("female", "male"), sensitive=True),
    ...     Real("income", 0, 500_000),
    ... ))
    >>> space.width, space.lattice.size
    (4, 114)
    >>> person = space.encode({"age": 41, "sex": "male", "income": 52_000})[0]
    >>> person.tolist()
    [41.0, 0.0, 1.0, 52000.0]
    >>> space.decode(person)
    {'age': 41, 'sex': 'male', 'income': 52000.0}
    """

    attributes: tuple[Attribute, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "attributes", tuple(self.attributes))
        names = [attribute.name for attribute in self.attributes]
        repeated = first_repeated(names)
        if repeated is not None:
            raise SchemaError(
                f"repeated attribute name: got {repeated!r} twice; expected different names"
            )
        for attribute in self.attributes:
            if isinstance(attribute, Derived):
                check_source(attribute, self.attribute(attribute.source))
        if not any(self.is_sensitive(attribute) for attribute in self.attributes):
            raise SchemaError(
                f"no sensitive attribute: got {names}; expected at least one that is sensitive"
            )

    @classmethod
    def from_frame(
        cls,
        records: "pd.DataFrame | Sequence[Record]",
        *,
        sensitive: Collection[str],
        missing: bool = False,
    ) -> Self:
        """Infer a space from a table: types from the values, domains from their extremes.

        Integers become `Integer`, texts and booleans `Categorical`, other numbers `Real`. A
        sensitive number with fractions becomes `Levels`, the list of its values in the table, since
        counterparts must be countable. Domains contain only what the table contains: check the
        result, and widen it where other people may exist. With `missing`, a column with empty cells
        may be missing; otherwise they raise.

        Examples
        --------
        >>> rows = [{"age": 19, "town": "Ulm"}, {"age": 75, "town": "Bonn"}]
        >>> FeatureSpace.from_frame(rows, sensitive=["age"]).attributes
        (Integer(name='age', low=19, high=75, sensitive=True, missing=False, strict=False),
         Categorical(name='town', values=('Bonn', 'Ulm'), sensitive=False, missing=False,
                     other=False))
        """
        columns = named_columns(records)
        _check_names(sensitive)
        return cls(infer_attributes(columns, sensitive=sensitive, missing=missing))

    def attribute(self, name: str) -> Attribute:
        """Return the attribute with this name."""
        for attribute in self.attributes:
            if attribute.name == name:
                return attribute
        names = [attribute.name for attribute in self.attributes]
        raise SchemaError(f"unknown attribute: {unknown_choice(name, names)}")

    def is_sensitive(self, attribute: Attribute) -> bool:
        """Return whether counterparts may differ in this attribute."""
        if isinstance(attribute, Derived):
            return self.is_sensitive(self.attribute(attribute.source))
        return attribute.sensitive

    def with_sensitive(self, names: Collection[str]) -> "FeatureSpace":
        """Return the same space with exactly these attributes sensitive."""
        _check_names(names)
        for name in names:
            attribute = self.attribute(name)
            if isinstance(attribute, Derived):
                raise SchemaError(
                    f"invalid sensitive attribute: got {name!r}, which is derived; "
                    f"expected its source; name {attribute.source!r} instead"
                )
        return FeatureSpace(
            tuple(
                a if isinstance(a, Derived) else replace(a, sensitive=a.name in names)
                for a in self.attributes
            )
        )

    @cached_property
    def width(self) -> int:
        """The number of columns of a person's row."""
        return sum(attribute.width for attribute in self.attributes)

    @cached_property
    def _columns(self) -> dict[str, slice]:
        ends = np.cumsum([attribute.width for attribute in self.attributes]).tolist()
        return {
            attribute.name: slice(end - attribute.width, end)
            for attribute, end in zip(self.attributes, ends, strict=True)
        }

    def columns_of(self, attribute: Attribute) -> slice:
        """Return the columns of a row that belong to an attribute."""
        return self._columns[attribute.name]

    @cached_property
    def sensitive(self) -> tuple[Attribute, ...]:
        """The attributes in which counterparts may differ, without derived ones."""
        return tuple(
            a for a in self.attributes if not isinstance(a, Derived) and self.is_sensitive(a)
        )

    @cached_property
    def sensitive_columns(self) -> Flags:
        """Flags of the columns that belong to sensitive attributes, derived ones included."""
        flags = np.concatenate([np.full(a.width, self.is_sensitive(a)) for a in self.attributes])
        flags.setflags(write=False)
        return flags

    @cached_property
    def finite(self) -> bool:
        """Whether a person has finitely many counterparts."""
        return not any(isinstance(attribute, Real) for attribute in self.sensitive)

    @cached_property
    def lattice(self) -> Lattice:
        """All assignments of the sensitive attributes; raises if there are infinitely many."""
        for axis in self.axes:
            if axis.real:
                raise SchemaError(
                    f"{axis.attribute.name!r} has uncountably many values: got a real number; "
                    "expected finitely many values; declare it integer, or give a step"
                )
        return Lattice(self.axes)

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        """The sensitive attributes as axes, in order; finite ones and real ones."""
        return tuple(self._axis(attribute) for attribute in self.sensitive)

    def _axis(self, attribute: Attribute) -> Axis:
        assert not isinstance(attribute, Derived)  # it belongs to the axis of its source
        derived = tuple(
            other
            for other in self.attributes
            if isinstance(other, Derived) and other.source == attribute.name
        )
        columns = [
            column
            for member in (attribute, *derived)
            for column in range(*self.columns_of(member).indices(self.width))
        ]
        return Axis(attribute, derived, tuple(columns))

    @cached_property
    def magnitudes(self) -> Vector:
        """The largest absolute value that each column can take."""
        largest = [column_magnitudes(attribute) for attribute in self.attributes]
        return frozen(np.concatenate(largest))

    @cached_property
    def fingerprint(self) -> str:
        """The SHA-256 of the attributes, in order."""
        return hash_attributes(self.attributes)

    @cached_property
    def sensitive_fingerprint(self) -> str:
        """The SHA-256 of the sensitive attributes, in order; assignment ids depend on them."""
        return hash_attributes([axis.attribute for axis in self.lattice.axes])

    def encode(
        self,
        records: "pd.DataFrame | Record | Sequence[Record]",
        *,
        sensitive: Literal["check", "ignore"] = "check",
        limits: Limits = "check",
    ) -> Matrix:
        """Convert raw records to rows of numbers, one row per person.

        Parameters
        ----------
        records
            A pandas frame, an Arrow table or batch, one record, or a list of records. Columns that
            are not in the space are ignored. Derived columns are computed, and compared if the
            records contain them.
        sensitive
            "ignore" reads no sensitive cell and fills in NaN. Only `tally` and
            `FairPredictor.decide` accept such rows.
        limits
            "open" also accepts numbers outside the limits of columns that are neither sensitive nor
            strict. Only `FairPredictor` accepts such rows; `feta.audit` takes the table itself.

        Raises
        ------
        DomainError
            If a column is missing or a value is outside its domain; names the column and the row.

        Examples
        --------
        >>> from feta import Integer, Real
        >>> space = FeatureSpace((Integer("age", 19, 75, sensitive=True), Real("income", 0, 9e6)))
        >>> space.encode([{"income": 52_000}], sensitive="ignore").tolist()
        [[nan, 52000.0]]
        """
        rows = self.row_plan(sensitive, limits).encode(records)
        if rows is not None:
            return rows
        columns = named_columns(records)
        if columns or isinstance(records, Mapping):
            with located(records):
                return encode_cells(self, columns, sensitive=sensitive, limits=limits)
        # The records have no columns: there are no people, or no column needs to be read.
        nothing_to_read = sensitive == "ignore" and all(map(self.is_sensitive, self.attributes))
        if len(records) and not nothing_to_read:
            encode_cells(self, columns)  # raises, and names the first missing column
        return np.full((len(records), self.width), np.nan)

    def encode_columns(
        self,
        columns: Mapping[str, Sequence[object]],
        *,
        sensitive: Literal["check", "ignore"] = "check",
        limits: Limits = "check",
    ) -> Matrix:
        """Convert a table of named columns of equal length; see `encode`."""
        rows = self.row_plan(sensitive, limits).encode_columns(columns)
        if rows is not None:
            return rows
        return encode_cells(self, columns, sensitive=sensitive, limits=limits)

    def row_plan(self, sensitive: Literal["check", "ignore"], limits: Limits) -> RowPlan:
        """Return the plan of this way of reading records, compiled once."""
        plan = self._row_plans.get((sensitive, limits))
        if plan is None:
            plan = self._row_plans[sensitive, limits] = RowPlan.of(
                self.attributes,
                {attribute.name: self.columns_of(attribute) for attribute in self.attributes},
                sensitive=[self.is_sensitive(attribute) for attribute in self.attributes],
                ignore_sensitive=sensitive == "ignore",
                open_limits=limits == "open",
            )
        return plan

    @cached_property
    def _row_plans(self) -> dict[tuple[str, str], RowPlan]:
        return {}

    def _source(self, derived: Derived, rows: Matrix) -> Vector:
        """Return the numbers from which an attribute is derived."""
        return rows[:, self._columns[derived.source].start]

    def unlisted(self, people: Matrix) -> dict[str, int]:
        """Count the people whose text is not listed, for each category that accepts other texts."""
        counts = {
            a.name: int(people[:, self.columns_of(a).start + len(a.values)].sum())
            for a in self.attributes
            if isinstance(a, Categorical) and a.other
        }
        return {name: count for name, count in counts.items() if count}

    def decode(self, person: Vector) -> dict[str, Value]:
        """Convert a person's row back to the raw record.

        Examples
        --------
        >>> from feta import Categorical
        >>> space = FeatureSpace((Categorical("sex", ("female", "male"), sensitive=True),))
        >>> space.decode(np.array([0.0, 1.0]))
        {'sex': 'male'}
        """
        self.check(np.asarray(person)[None, :], limits="open")
        return {a.name: a.decode(person[self.columns_of(a)]) for a in self.attributes}

    def contains(self, person: Vector) -> bool:
        """Return whether a row is a person of this space."""
        row = np.asarray(person)
        if row.shape != (self.width,):
            return False
        return all(self._valid(a, row[None, :]).all() for a in self.attributes)

    def check(
        self,
        people: Matrix,
        *,
        sensitive: Literal["check", "ignore"] = "check",
        limits: Limits = "check",
    ) -> None:
        """Raise unless every row is a person of this space; options as in `encode`."""
        if people.ndim != 2 or people.shape[1] != self.width:  # noqa: PLR2004 - a matrix
            raise DomainError(
                f"invalid people: got an array of shape {people.shape}; "
                f"expected a matrix with {self.width} columns; convert people with space.encode"
            )
        if self._quick_checks[sensitive].passes(people):
            return
        for attribute in self.attributes:
            if sensitive == "ignore" and self.is_sensitive(attribute):
                continue
            bad = np.flatnonzero(~self._valid(attribute, people, limits))
            if bad.size:
                row = int(bad[0])
                got = people[row, self.columns_of(attribute)].tolist()
                shown = got[0] if len(got) == 1 else got
                what = f"is invalid: got {shown!r}; expected {attribute.domain()}"
                if self._valid(attribute, people[row : row + 1], "open")[0]:
                    what += (
                        "; feta.audit and FairPredictor.decide accept people outside the limits"
                        " of this column"
                    )
                raise DomainError.at(attribute.name, row, what)

    @cached_property
    def _quick_checks(self) -> dict[str, QuickCheck]:
        shared = tuple(a for a in self.attributes if not self.is_sensitive(a))
        return {
            "check": QuickCheck(self.attributes, [self.columns_of(a) for a in self.attributes]),
            "ignore": QuickCheck(shared, [self.columns_of(a) for a in shared]),
        }

    @cached_property
    def open_limits(self) -> OpenLimits:
        """The limits of columns that are neither sensitive nor strict."""
        return OpenLimits.of(
            {
                self.columns_of(a).start: a
                for a in self.attributes
                if is_open(a, sensitive=self.is_sensitive(a))
            }
        )

    @property
    def quick_check(self) -> QuickCheck:
        """The check of the columns that counterparts share."""
        return self._quick_checks["ignore"]

    def _valid(self, attribute: Attribute, people: Matrix, limits: Limits = "check") -> Flags:
        codes = people[:, self.columns_of(attribute)]
        if limits == "open" and is_open(attribute, sensitive=self.is_sensitive(attribute)):
            return readable(attribute, codes)
        if not isinstance(attribute, Derived):
            return attribute.valid(codes)
        expected = attribute.derive(self._source(attribute, people))
        return np.asarray((codes == expected).all(axis=1) & (expected.sum(axis=1) == 1.0))


def _check_names(names: Collection[str]) -> None:
    if isinstance(names, str):
        raise SchemaError(
            f"invalid sensitive attributes: got the text {names!r}; "
            f"expected a list of names; write [{names!r}]"
        )
