"""Evaluation of the user's preprocessing on people who differ in one column."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from feta.absorb.encoders import EncoderInput, Unseen, count_values
from feta.absorb.feature import root_column
from feta.absorb.walk import as_numbers, run_step
from feta.arrays import Counts, Matrix, Vector
from feta.errors import NetworkError
from feta.space.attribute import OTHER, Attribute, Categorical, Derived, Real
from feta.space.feature_space import FeatureSpace

# Rows per call of `transform`.
BLOCK = 2**13

# Probed values per column. A column of at most MAX_FULLY_PROBED values is probed completely, so
# that no value unknown to an encoder is missed; a longer one only shows the features' magnitudes.
FEW_PROBES = 64
MAX_FULLY_PROBED = 4096

# Values per column among which a value that the pipeline rejects is searched.
SEARCHED_VALUES = 1000

# Characters of a pipeline's exception that a message quotes.
MAX_QUOTED = 300


@dataclass(frozen=True)
class Evaluation:
    """Preprocessing, and the function that turns rows of a space into its input table."""

    space: FeatureSpace
    preprocessing: Any
    table: Callable[[Matrix], Any]

    def features(self, people: Matrix) -> Matrix:
        """Compute the features of people; name the column and value that raise an error."""
        parts = []
        for start in range(0, len(people), BLOCK):
            try:
                parts.append(self._run(people[start : start + BLOCK]))
            except Exception as error:  # the user's code may raise anything
                raise self._rejection(error) from None
        return np.concatenate(parts)

    def _run(self, people: Matrix) -> Matrix:
        return as_numbers(run_step(self.preprocessing, self.table(people)))

    @cached_property
    def base(self) -> Vector:
        """The person with the middle value of every column, none missing."""
        row = np.zeros(self.space.width)
        for attribute in self.space.attributes:
            if not isinstance(attribute, Derived):
                row[self.space.columns_of(attribute)] = _middle(attribute)
        for attribute in self.space.attributes:
            if isinstance(attribute, Derived):
                source = self.space.columns_of(self.space.attribute(attribute.source)).start
                row[self.space.columns_of(attribute)] = attribute.derive(row[[source]])[0]
        return row

    @property
    def roots(self) -> list[str]:
        """The columns that vary independently; bands of a finite column are not among them."""
        names = [attribute.name for attribute in self.space.attributes]
        return [name for name in names if root_column(self.space, name) == name]

    def vary(self, name: str, codes: Matrix) -> Matrix:
        """Return people who differ from the base in one column and in the bands derived from it."""
        rows = np.repeat(self.base[None, :], len(codes), axis=0)
        self.set_column(rows, name, codes)
        return rows

    def set_column(self, rows: Matrix, name: str, codes: Matrix) -> None:
        """Write values of a column, and the bands derived from it, into rows."""
        rows[:, self.space.columns_of(self.space.attribute(name))] = codes
        for attribute in self.space.attributes:
            derived = isinstance(attribute, Derived) and attribute.source == name
            if (
                isinstance(attribute, Derived)
                and derived
                and root_column(self.space, attribute.name) == name
            ):
                rows[:, self.space.columns_of(attribute)] = attribute.derive(codes[:, 0])

    def probes(self) -> Matrix:
        """Return the base, and people who differ from it in one column, for every column."""
        parts = [self.vary(name, self.probed_codes(name)) for name in self.roots]
        return np.concatenate([self.base[None, :], *parts])

    def probed_codes(self, name: str) -> Matrix:
        """Return the values of a column in the probes: all of them, unless there are many."""
        n_values = count_values(self.space.attribute(name))
        few = n_values is not None and n_values <= MAX_FULLY_PROBED
        return self.sample_codes(name, MAX_FULLY_PROBED if few else FEW_PROBES)

    def unseen(self, inputs: Sequence[EncoderInput]) -> list[Unseen]:
        """Return the values of the probes that encoders never saw."""
        n_rows = 1  # the base is the first row
        starts = {}
        for name in self.roots:
            starts[name] = n_rows
            n_rows += len(self.probed_codes(name))
        candidates = [self._unseen(encoder_input, starts) for encoder_input in inputs]
        return [values for values in candidates if values is not None]

    def _unseen(self, encoder_input: EncoderInput, starts: dict[str, int]) -> Unseen | None:
        attribute = self.space.attribute(encoder_input.column)
        codes = self.probed_codes(encoder_input.column)
        start = starts[encoder_input.column]
        cells = encoder_input.cells[start : start + len(codes)]
        values = [
            attribute.decode(code)
            for cell, code in zip(cells, codes, strict=True)
            if not encoder_input.knows(cell)
        ]
        has_other = isinstance(attribute, Categorical) and attribute.other
        unknown = [value for value in values if not (has_other and value == OTHER)]
        return Unseen(attribute, tuple(unknown), encoder_input.known) if unknown else None

    def sample_codes(self, name: str, limit: int) -> Matrix:
        """Return up to `limit` evenly spaced values of a column, with both ends and missing."""
        attribute = self.space.attribute(name)
        if isinstance(attribute, Real):
            numbers = np.linspace(attribute.low, attribute.high, limit).tolist()
            return attribute.encode(numbers + [None] * attribute.missing)
        if isinstance(attribute, Derived):
            return np.eye(attribute.width)
        n_values = attribute.n_values
        indices = np.linspace(0, n_values - 1, min(limit, n_values)).astype(np.int64)
        if attribute.missing and n_values > 1:  # missing is last, the highest number before it
            indices = np.union1d(indices, [n_values - 2])
        return attribute.codes(np.unique(indices))

    def codes(self, name: str, indices: Counts | None = None) -> Matrix:
        """Return the values of a finite column at some indices, by default all of them."""
        attribute = self.space.attribute(name)
        if isinstance(attribute, Derived):
            return np.eye(attribute.width)
        assert not isinstance(attribute, Real)
        return attribute.codes(np.arange(attribute.n_values) if indices is None else indices)

    def _rejection(self, error: Exception) -> NetworkError:
        """Return an error that names the value that the preprocessing rejects."""
        reason = " ".join(str(error).split())[:MAX_QUOTED]
        for name in self.roots:
            for code in self.sample_codes(name, SEARCHED_VALUES):
                passes = self._passes(self.vary(name, code[None, :]))
                if passes == self._passes(self.base[None, :]):
                    continue
                base_code = self.base[self.space.columns_of(self.space.attribute(name))]
                value = self.space.attribute(name).decode(base_code if passes else code)
                return NetworkError(
                    f"the pipeline rejects a value that the schema allows for {name!r}: "
                    f"got {value!r} ({reason}); remove the value from the schema, or fit with an "
                    "encoder that accepts it (handle_unknown='ignore') or an imputer"
                )
        return NetworkError(f"the pipeline rejects people of this space: {reason}{self.text_hint}")

    @property
    def text_hint(self) -> str:
        """A hint at text columns, which the user's program may read as booleans or numbers."""
        names = [
            repr(attribute.name)
            for attribute in self.space.attributes
            if isinstance(attribute, Categorical) and isinstance(attribute.values[0], str)
        ]
        if not names:
            return "; compare the schema's columns with the table that the pipeline was trained on"
        return (
            f"; the schema has texts in {', '.join(names)}: if your program reads one as booleans "
            "or numbers, declare it in [table] (true_values, dtype)"
        )

    def _passes(self, people: Matrix) -> bool:
        try:
            self._run(people)
        except Exception:  # the user's code may raise anything
            return False
        return True


def _middle(attribute: Attribute) -> Vector:
    assert not isinstance(attribute, Derived)
    if isinstance(attribute, Real):
        middle = attribute.low + (attribute.high - attribute.low) / 2
        return attribute.encode([middle])[0]
    n_present = attribute.n_values - attribute.missing
    return attribute.codes(np.array([n_present // 2]))[0]
