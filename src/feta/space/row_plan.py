"""The row plan: encoding compiled once per space, for usual records, tables and Arrow batches.

It gives exactly the rows of `FeatureSpace.encode_columns`, or None. None means that some cell is
unusual or invalid: `encode_columns` then converts everything, and words the error if there is one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import getitem, itemgetter
from typing import Any

import numpy as np

from feta.arrays import Counts, Matrix
from feta.space.attribute import Attribute, Categorical, Derived
from feta.space.column_plan import (
    PLAIN_NUMBERS,
    UNUSUAL,
    CategoryPlan,
    CellBytes,
    ColumnPlan,
    DerivedPlan,
    NumberPlan,
)
from feta.space.limits import is_open
from feta.space.records import is_arrow

Cells = Callable[[Any], tuple[Any, ...]]


@dataclass(frozen=True, slots=True, eq=False)
class RecordPlan:
    """How one record becomes a row: the bytes of each cell, joined."""

    cells: Cells  # reads the cells of the row, in order
    numbers: Cells | None  # reads those that must have a plain type
    derived: frozenset[str]  # columns that a record may contain, and would have to be compared
    cell_bytes: tuple[CellBytes, ...]

    @classmethod
    def of(cls, plans: Sequence[ColumnPlan], derived: Sequence[DerivedPlan]) -> "RecordPlan":
        """Prepare the columns of a record, in the order of the row."""
        everything: list[ColumnPlan | DerivedPlan] = sorted(
            [*plans, *derived], key=lambda plan: plan.columns.start
        )
        names = [
            plan.attribute.source if isinstance(plan, DerivedPlan) else plan.name
            for plan in everything
        ]
        numbers = [plan.name for plan in plans if isinstance(plan, NumberPlan)]
        return cls(
            _reader(names),
            _reader(numbers) if numbers else None,
            frozenset(plan.name for plan in derived),
            tuple(plan.cell_bytes() for plan in everything),
        )

    def row(self, record: dict[str, Any]) -> bytearray | None:
        """Return the bytes of the row; None for a record with an unusual cell."""
        try:
            if self.numbers and not PLAIN_NUMBERS.issuperset(map(type, self.numbers(record))):
                return None
            # `map` ends with the shorter of both, so a repeated cell is not converted.
            row = bytearray().join(map(getitem, self.cell_bytes, self.cells(record)))
        except UNUSUAL:
            return None
        return None if self.derived and not self.derived.isdisjoint(record) else row


@dataclass(frozen=True, slots=True, eq=False)
class RowPlan:
    """The plans of all columns that are read, in one way of reading a space."""

    width: int
    plans: tuple[ColumnPlan, ...]
    derived: tuple[DerivedPlan, ...]
    ignored: Counts  # columns that are not read and contain NaN
    kept: Counts
    record: RecordPlan | None  # None if no column is read

    @classmethod
    def of(
        cls,
        attributes: Sequence[Attribute],
        columns: Mapping[str, slice],
        *,
        sensitive: Sequence[bool],
        ignore_sensitive: bool,
        open_limits: bool,
    ) -> "RowPlan":
        """Compile the plans of these attributes; options as in `FeatureSpace.encode`."""
        plans: list[ColumnPlan] = []
        derived: list[DerivedPlan] = []
        width = sum(attribute.width for attribute in attributes)
        ignored = np.zeros(width, dtype=bool)
        for attribute, is_sensitive in zip(attributes, sensitive, strict=True):
            place = columns[attribute.name]
            if ignore_sensitive and is_sensitive:
                ignored[place] = True
            elif isinstance(attribute, Derived):
                derived.append(DerivedPlan(attribute, place, columns[attribute.source].start))
            elif isinstance(attribute, Categorical):
                plans.append(CategoryPlan.of(attribute, place))
            else:
                opened = open_limits and is_open(attribute, sensitive=is_sensitive)
                plans.append(NumberPlan.of(attribute, place, is_open=opened))
        record = RecordPlan.of(plans, derived) if plans else None
        kept = np.flatnonzero(~ignored)
        return cls(width, tuple(plans), tuple(derived), np.flatnonzero(ignored), kept, record)

    def encode(self, records: Any) -> Matrix | None:  # noqa: ANN401 - a table of any library
        """Return the rows of a record, a list of records, a frame or an Arrow batch, or None."""
        if type(records) is dict:
            return self._encode_record(records)
        if not self.plans:
            return None
        if isinstance(records, list | tuple):
            columns = self._columns_of_records(records)
            return None if columns is None else self.encode_columns(columns)
        if is_arrow(records):
            return self._encode_arrow(records)
        if hasattr(records, "iloc"):
            columns = self._columns_of_frame(records)
            return None if columns is None else self.encode_columns(columns)
        return None

    def encode_columns(self, columns: Mapping[str, Any]) -> Matrix | None:
        """Return the rows of named columns, lists or arrays of equal length, or None."""
        rows = self._rows(len(next(iter(columns.values()), [])))
        try:
            fitting = all(plan.fill(rows, columns[plan.name]) for plan in self.plans)
            fitting = fitting and all(
                plan.fill(rows, columns.get(plan.name)) for plan in self.derived
            )
        except UNUSUAL:
            return None
        return rows if fitting else None

    def _rows(self, count: int) -> Matrix:
        rows = np.zeros((count, self.width))
        if len(self.ignored):
            rows[:, self.ignored] = np.nan
        return rows

    def _encode_record(self, record: dict[str, Any]) -> Matrix | None:
        if self.record is None:
            return None
        row = self.record.row(record)
        if row is None:
            return self.encode_columns({name: [value] for name, value in record.items()})
        numbers = np.frombuffer(row)
        if not len(self.ignored):
            return numbers.reshape(1, -1)
        rows = np.full((1, self.width), np.nan)
        rows[0, self.kept] = numbers
        return rows

    def _columns_of_records(self, records: Sequence[Any]) -> dict[str, Any] | None:
        if set(map(type, records)) != {dict}:
            return None
        try:
            columns = {plan.name: [record[plan.name] for record in records] for plan in self.plans}
        except KeyError:
            return None
        for plan in self.derived:
            if any(plan.name in record for record in records):
                columns[plan.name] = [record.get(plan.name) for record in records]
        return columns

    def _columns_of_frame(self, frame: Any) -> dict[str, Any] | None:  # noqa: ANN401 - a frame
        positions = {str(name): index for index, name in enumerate(frame.columns)}
        if len(positions) != len(frame.columns):  # a name occurs twice
            return None
        names = [plan.name for plan in self.plans] + [plan.name for plan in self.derived]
        return {
            name: frame.iloc[:, positions[name]].to_numpy() for name in names if name in positions
        }

    def _encode_arrow(self, batch: Any) -> Matrix | None:  # noqa: ANN401 - pyarrow has no types
        names = list(batch.column_names)
        if len(set(names)) != len(names):
            return None
        rows = self._rows(batch.num_rows)
        try:
            fitting = all(
                plan.fill_arrow(rows, _whole(batch.column(plan.name))) for plan in self.plans
            )
            fitting = fitting and all(
                plan.fill(rows, batch.column(plan.name).to_pylist() if plan.name in names else None)
                for plan in self.derived
            )
        except (*UNUSUAL, NotImplementedError, AttributeError):  # types that Arrow cannot convert
            return None
        return rows if fitting else None


def _whole(column: Any) -> Any:  # noqa: ANN401 - pyarrow has no types
    """Return the column of a batch, or of a table, as one array."""
    return column.combine_chunks() if hasattr(column, "combine_chunks") else column


def _reader(names: Sequence[str]) -> Cells:
    """Return the function that reads these cells of a record; it may repeat the last one."""
    return itemgetter(*names, names[-1])
