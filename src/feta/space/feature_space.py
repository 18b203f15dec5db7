"""FeatureSpace: the attributes in order; raw records in, rows of numbers out, and back."""

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal, Self

import numpy as np

from feta.arrays import Flags, Matrix, Vector, frozen
from feta.errors import DomainError, SchemaError, missing, one_of
from feta.space.attribute import Attribute, Categorical, Derived, Integer, Levels, Real, Value
from feta.space.infer_schema import ColumnSummary
from feta.space.lattice import Axis, Lattice
from feta.space.limits import Limits, OpenLimits, encode_open, is_open, readable
from feta.space.quick_check import QuickCheck

if TYPE_CHECKING:
    import pandas as pd

Record = Mapping[str, object]

# Fields that attributes got after the first file format: part of a fingerprint only where set.
NAMED = ("other", "strict")


@dataclass(frozen=True)
class FeatureSpace:
    """The attributes a model reads, in its order, and which of them are sensitive.

    Parameters
    ----------
    attributes
        In the order of the network's inputs; at least one of them sensitive.

    Examples
    --------
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
        twice = _first_repeated(names)
        if twice is not None:
            raise SchemaError(f"attribute names must differ, got {twice!r} twice")
        for attribute in self.attributes:
            if isinstance(attribute, Derived):
                self._check_derived(attribute)
        if not any(self.is_sensitive(attribute) for attribute in self.attributes):
            raise SchemaError(f"at least one attribute must be sensitive, got none of {names}")

    @classmethod
    def from_frame(
        cls,
        records: "pd.DataFrame | Sequence[Record]",
        *,
        sensitive: Collection[str],
        missing: bool = False,
    ) -> Self:
        """Guess a space from a table: types from the values, domains from their extremes.

        Whole numbers become `Integer`, other numbers `Real` (a sensitive one the list of values
        seen, since counterparts must be countable), texts and booleans `Categorical`. Domains are
        what the table happens to hold: read the result, and widen it where people may differ. With
        `missing`, a column with empty cells may be missing; without, they are refused.

        Examples
        --------
        >>> rows = [{"age": 19, "town": "Ulm"}, {"age": 75, "town": "Bonn"}]
        >>> FeatureSpace.from_frame(rows, sensitive=["age"]).attributes
        (Integer(name='age', low=19, high=75, sensitive=True, missing=False, strict=False),
         Categorical(name='town', values=('Bonn', 'Ulm'), sensitive=False, missing=False,
                     other=False))
        """
        columns = _columns(records)
        _check_names(sensitive)
        if not columns:
            raise DomainError("the table must have at least one row")
        for name in sensitive:
            if name not in columns:
                raise DomainError(
                    f"a sensitive column must be {one_of(name, columns)}", column=name
                )
        attributes = []
        for name, values in columns.items():
            summary = ColumnSummary(name, missing=missing)
            summary.add(values)
            attributes.append(summary.attribute(sensitive=name in sensitive))
        return cls(tuple(attributes))

    def _check_derived(self, derived: Derived) -> None:
        source = self.attribute(derived.source)
        if isinstance(source, Categorical | Derived):
            message = f"{derived.name!r} must come from a column of numbers, got {source.name!r}"
            raise SchemaError(message)
        if source.missing:
            message = f"{derived.name!r} must come from a column that is never missing, got {source.name!r}"
            raise SchemaError(message)
        if isinstance(source, Real):
            if source.sensitive:
                message = f"{derived.name!r} needs a finite source: declare {source.name!r} integer, or give a step"
                raise SchemaError(message)
            return
        # Bands of a finite source are checked value by value, a block at a time.
        for start in range(0, source.n_values, 2**16):
            indices = np.arange(start, min(start + 2**16, source.n_values))
            values = source.codes(indices)[:, 0]
            fits = derived.derive(values).sum(axis=1)
            if (fits != 1).any():
                value = values[np.argmax(fits != 1)]
                message = f"{derived.name!r} must have exactly one band for {source.name} {value:g}, got {int(fits[np.argmax(fits != 1)])}"
                raise SchemaError(message)

    def attribute(self, name: str) -> Attribute:
        """Find an attribute by its name."""
        for attribute in self.attributes:
            if attribute.name == name:
                return attribute
        raise SchemaError(f"an attribute must be {one_of(name, [a.name for a in self.attributes])}")

    def is_sensitive(self, attribute: Attribute) -> bool:
        """Say whether counterparts may differ in this attribute."""
        if isinstance(attribute, Derived):
            return self.is_sensitive(self.attribute(attribute.source))
        return attribute.sensitive

    def with_sensitive(self, names: Collection[str]) -> "FeatureSpace":
        """Take the same space with just these attributes sensitive."""
        _check_names(names)
        for name in names:
            if isinstance(self.attribute(name), Derived):
                message = f"{name!r} is derived and moves with its source; name that instead"
                raise SchemaError(message)
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
    def _starts(self) -> dict[str, int]:
        starts = np.cumsum([0, *(attribute.width for attribute in self.attributes)])
        return {a.name: int(start) for a, start in zip(self.attributes, starts, strict=False)}

    def columns_of(self, attribute: Attribute) -> slice:
        """Tell which columns of a row belong to an attribute."""
        start = self._starts[attribute.name]
        return slice(start, start + attribute.width)

    @cached_property
    def sensitive(self) -> tuple[Attribute, ...]:
        """The attributes in which counterparts may differ, but for derived ones."""
        return tuple(
            a for a in self.attributes if not isinstance(a, Derived) and self.is_sensitive(a)
        )

    @cached_property
    def sensitive_columns(self) -> Flags:
        """Which columns of a row belong to sensitive attributes, derived ones included."""
        flags = np.concatenate([np.full(a.width, self.is_sensitive(a)) for a in self.attributes])
        flags.setflags(write=False)
        return flags

    @property
    def finite(self) -> bool:
        """Whether a person has finitely many counterparts."""
        return not any(isinstance(attribute, Real) for attribute in self.sensitive)

    @cached_property
    def lattice(self) -> Lattice:
        """All assignments of the sensitive attributes; refused where there are infinitely many."""
        return Lattice(tuple(self._axes()))

    def _axes(self) -> Iterator[Axis]:
        for attribute in self.sensitive:
            if isinstance(attribute, Real):
                message = f"{attribute.name!r} has uncountably many values: declare it integer, or give a step"
                raise SchemaError(message)
            assert not isinstance(attribute, Derived)
            derived = tuple(
                a for a in self.attributes if isinstance(a, Derived) and a.source == attribute.name
            )
            columns = [
                column
                for member in (attribute, *derived)
                for column in range(*self.columns_of(member).indices(self.width))
            ]
            yield Axis(attribute, derived, tuple(columns))

    @cached_property
    def magnitudes(self) -> Vector:
        """The largest absolute value that each column can take."""
        largest: list[float] = []
        for attribute in self.attributes:
            match attribute:
                case Categorical() | Derived():
                    largest += [1.0] * attribute.width
                    continue
                case Levels():
                    largest.append(max(abs(number) for number in attribute.numbers))
                case Integer() | Real():
                    largest.append(max(abs(float(attribute.low)), abs(float(attribute.high))))
            largest += [1.0] * attribute.missing
        return frozen(largest)

    @cached_property
    def fingerprint(self) -> str:
        """A sha256 of the attributes, in order."""
        listed = [[a.kind, *_fields(a)] for a in self.attributes]
        return hashlib.sha256(json.dumps(listed).encode()).hexdigest()

    @cached_property
    def sensitive_fingerprint(self) -> str:
        """A sha256 of the sensitive attributes, in order: it says which assignment a number is."""
        listed = [[axis.attribute.kind, *_fields(axis.attribute)] for axis in self.lattice.axes]
        return hashlib.sha256(json.dumps(listed).encode()).hexdigest()

    def encode(
        self,
        records: "pd.DataFrame | Record | Sequence[Record]",
        *,
        sensitive: Literal["check", "ignore"] = "check",
        limits: Limits = "check",
    ) -> Matrix:
        """Turn raw records into rows of numbers, one a person.

        Parameters
        ----------
        records
            A pandas frame, one record, or a list of records. Columns that are not in the space are
            left alone; derived ones are computed, and compared where they are given.
        sensitive
            "ignore" reads no sensitive cell and puts NaN there; such rows are good for `tally` and
            `FairPredictor.decide` only.
        limits
            "open" also takes numbers outside the limits of columns that are neither sensitive nor
            strict; such rows are for `FairPredictor` only (`feta.audit` takes the table itself).

        Raises
        ------
        DomainError
            Where a column is missing or a value lies outside its domain; it names column and row.

        Examples
        --------
        >>> space = FeatureSpace((Integer("age", 19, 75, sensitive=True), Real("income", 0, 9e6)))
        >>> space.encode([{"income": 52_000}], sensitive="ignore").tolist()
        [[nan, 52000.0]]
        """
        columns = _columns(records)
        if not columns and not isinstance(
            records, Mapping
        ):  # nobody, or nothing but sensitive columns
            if len(records) and not (
                sensitive == "ignore" and all(map(self.is_sensitive, self.attributes))
            ):
                self.encode_columns(columns)
            return np.full((len(records), self.width), np.nan)
        return self.encode_columns(columns, sensitive=sensitive, limits=limits)

    def encode_columns(
        self,
        columns: Mapping[str, Sequence[object]],
        *,
        sensitive: Literal["check", "ignore"] = "check",
        limits: Limits = "check",
    ) -> Matrix:
        """Do the same for a table that comes as named columns of equal length."""
        n_people = len(next(iter(columns.values()), []))
        rows = np.full((n_people, self.width), np.nan)
        for attribute in self.attributes:
            ignored = sensitive == "ignore" and self.is_sensitive(attribute)
            if isinstance(attribute, Derived) or ignored:
                continue
            if attribute.name not in columns:
                raise DomainError(missing(attribute.name, columns), column=attribute.name)
            cells = columns[attribute.name]
            if limits == "open" and is_open(attribute, sensitive=self.is_sensitive(attribute)):
                rows[:, self.columns_of(attribute)] = encode_open(attribute, cells)
            else:
                rows[:, self.columns_of(attribute)] = attribute.encode(cells)
        for attribute in self.attributes:
            if isinstance(attribute, Derived):
                if sensitive == "ignore" and self.is_sensitive(attribute):
                    continue
                rows[:, self.columns_of(attribute)] = self._derive(attribute, rows)
                if attribute.name in columns:
                    self._compare_derived(attribute, rows, columns[attribute.name])
        return rows

    def _derive(self, derived: Derived, rows: Matrix) -> Matrix:
        source = self.attribute(derived.source)
        values = rows[:, self.columns_of(source).start]
        codes = derived.derive(values)
        bad = np.flatnonzero(codes.sum(axis=1) != 1)
        if bad.size:
            row = int(bad[0])
            message = f"must have exactly one band for {source.name} {values[row]:g}"
            raise DomainError.at(derived.name, row, message)
        return codes

    def _compare_derived(self, derived: Derived, rows: Matrix, given: Sequence[object]) -> None:
        codes = rows[:, self.columns_of(derived)]
        for row, value in enumerate(given):
            due = derived.decode(codes[row])
            if value != due:
                message = (
                    f"must be {due!r}, since it follows from {derived.source!r}, got {value!r}"
                )
                raise DomainError.at(derived.name, row, message)

    def unlisted(self, people: Matrix) -> dict[str, int]:
        """Count the people whose text is not listed, by category that takes other texts."""
        counts = {
            one.name: int(people[:, self.columns_of(one).start + len(one.values)].sum())
            for one in self.attributes
            if isinstance(one, Categorical) and one.other
        }
        return {name: count for name, count in counts.items() if count}

    def decode(self, person: Vector) -> dict[str, Value]:
        """Turn a person's row back into the raw record.

        Examples
        --------
        >>> space = FeatureSpace((Categorical("sex", ("female", "male"), sensitive=True),))
        >>> space.decode(np.array([0.0, 1.0]))
        {'sex': 'male'}
        """
        self.check(np.asarray(person)[None, :], limits="open")
        return {a.name: a.decode(person[self.columns_of(a)]) for a in self.attributes}

    def contains(self, person: Vector) -> bool:
        """Say whether a row is a person of this space."""
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
        """Raise unless every row is a person of this space, naming column and row; limits as in `encode`."""
        if people.ndim != 2 or people.shape[1] != self.width:  # noqa: PLR2004 - a matrix
            message = f"people must be a matrix with {self.width} columns, got the shape {people.shape}; space.encode makes it"
            raise DomainError(message)
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
                message = f"must be {attribute.domain()}, got {shown!r}"
                if self._valid(attribute, people[row : row + 1], "open")[0]:
                    message += "; feta.audit and FairPredictor.decide take people outside the limits of this column"
                raise DomainError.at(attribute.name, row, message)

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
                self.columns_of(one).start: one
                for one in self.attributes
                if is_open(one, sensitive=self.is_sensitive(one))
            }
        )

    @property
    def quick_check(self) -> QuickCheck:
        """The limits of the columns that counterparts share, all at once."""
        return self._quick_checks["ignore"]

    def _valid(self, attribute: Attribute, people: Matrix, limits: Limits = "check") -> Flags:
        codes = people[:, self.columns_of(attribute)]
        if limits == "open" and is_open(attribute, sensitive=self.is_sensitive(attribute)):
            return readable(attribute, codes)
        if not isinstance(attribute, Derived):
            return attribute.valid(codes)
        source = people[:, self._starts[attribute.source]]
        due = attribute.derive(source)
        return np.asarray((codes == due).all(axis=1) & (due.sum(axis=1) == 1.0))


def _fields(attribute: Attribute) -> list[object]:
    """List an attribute's fields; later additions only where they are set, so fingerprints stay."""
    values = {field.name: getattr(attribute, field.name) for field in fields(attribute)}
    named = [name for name in NAMED if values.pop(name, False)]
    return [value for name, value in values.items() if name != "missing" or value] + named


def _columns(records: "pd.DataFrame | Record | Sequence[Record]") -> dict[str, Sequence[object]]:
    """Take a table apart into named columns."""
    if isinstance(records, Mapping):
        return {name: [value] for name, value in records.items()}
    if not isinstance(records, Sequence):
        if not hasattr(records, "iloc"):
            raise DomainError("people must come as a pandas frame, a dict, or a list of dicts")
        names = [str(name) for name in records.columns]
        twice = _first_repeated(names)
        if twice is not None:
            raise DomainError(f"the table must not have the column {twice!r} twice", column=twice)
        return {name: list(records.iloc[:, index].to_numpy()) for index, name in enumerate(names)}
    if not all(isinstance(record, Mapping) for record in records):
        raise DomainError("people must come as a pandas frame, a dict, or a list of dicts")
    names = list(dict.fromkeys(name for record in records for name in record))
    return {name: [record.get(name) for record in records] for name in names}


def _first_repeated(names: Sequence[str]) -> str | None:
    return next((name for name, count in Counter(names).items() if count > 1), None)


def _check_names(names: Collection[str]) -> None:
    if isinstance(names, str):
        raise SchemaError(
            f"sensitive attributes must come as a list of names, got {names!r}; write [{names!r}]"
        )
