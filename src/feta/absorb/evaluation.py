"""Evaluation: the features that a user's own preprocessing makes of people who differ in one column."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from feta.absorb.encoders import EncoderInput, Unseen, values_of
from feta.absorb.feature import root
from feta.absorb.walk import numbers, transformed
from feta.arrays import Counts, Matrix, Vector
from feta.errors import NetworkError
from feta.space.attribute import OTHER, Attribute, Categorical, Derived, Real
from feta.space.feature_space import FeatureSpace

# Rows put to `transform` at a time.
BLOCK = 2**13

# Values of a long column that are looked at to learn the features' sizes; shorter ones are looked at
# whole, so that an encoder's unknown values show.
LOOKED_AT = 64
LISTED_WHOLE = 4096


@dataclass(frozen=True)
class Evaluation:
    """Preprocessing, and how rows of a space become the table that it takes."""

    space: FeatureSpace
    preprocessing: Any
    table: Callable[[Matrix], Any]

    def features(self, people: Matrix) -> Matrix:
        """Evaluate the features of some people; a value that is refused is told by its column."""
        parts = []
        for start in range(0, len(people), BLOCK):
            try:
                parts.append(self._run(people[start : start + BLOCK]))
            except Exception as error:  # whatever a user's own code raises
                raise self._refusal(error) from None
        return np.concatenate(parts)

    def _run(self, people: Matrix) -> Matrix:
        return numbers(transformed(self.preprocessing, self.table(people)))

    @cached_property
    def base(self) -> Vector:
        """A person in the middle of everything, with nothing missing."""
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
        """The columns that move by themselves; bands of a finite column move with it."""
        names = [attribute.name for attribute in self.space.attributes]
        return [name for name in names if root(self.space, name) == name]

    def varied(self, name: str, codes: Matrix) -> Matrix:
        """Give people like the base but for one column, and for the bands that move with it."""
        rows = np.repeat(self.base[None, :], len(codes), axis=0)
        self.put(rows, name, codes)
        return rows

    def put(self, rows: Matrix, name: str, codes: Matrix) -> None:
        """Write values of a column into rows."""
        rows[:, self.space.columns_of(self.space.attribute(name))] = codes
        for one in self.space.attributes:
            moves = isinstance(one, Derived) and one.source == name
            if isinstance(one, Derived) and moves and root(self.space, one.name) == name:
                rows[:, self.space.columns_of(one)] = one.derive(codes[:, 0])

    def probes(self) -> Matrix:
        """Return people like the base except in one column, for some values of every column."""
        parts = [self.varied(name, self.probed(name)) for name in self.roots]
        return np.concatenate([self.base[None, :], *parts])

    def probed(self, name: str) -> Matrix:
        """Return the values of a column that the probes hold: all of them, unless there are many."""
        n_values = values_of(self.space.attribute(name))
        whole = n_values is not None and n_values <= LISTED_WHOLE
        return self.some_codes(name, LISTED_WHOLE if whole else LOOKED_AT)

    def unseen(self, inputs: Sequence[EncoderInput]) -> list[Unseen]:
        """Find the values of the probes that encoders have never seen."""
        rows = 1  # the base comes first
        starts = {}
        for name in self.roots:
            starts[name] = rows
            rows += len(self.probed(name))
        return [one for given in inputs if (one := self._unseen(given, starts)) is not None]

    def _unseen(self, given: EncoderInput, starts: dict[str, int]) -> Unseen | None:
        attribute = self.space.attribute(given.column)
        codes = self.probed(given.column)
        start = starts[given.column]
        cells = given.cells[start : start + len(codes)]
        values = [
            attribute.decode(code)
            for cell, code in zip(cells, codes, strict=True)
            if not given.knows(cell)
        ]
        listed = isinstance(attribute, Categorical) and attribute.other
        unknown = [value for value in values if not (listed and value == OTHER)]
        return Unseen(attribute, tuple(unknown), given.known) if unknown else None

    def some_codes(self, name: str, most: int) -> Matrix:
        """Give a column's values, evenly spread if they are many; the ends and missing are in."""
        attribute = self.space.attribute(name)
        if isinstance(attribute, Real):
            spread = np.linspace(attribute.low, attribute.high, most).tolist()
            return attribute.encode(spread + [None] * attribute.missing)
        if isinstance(attribute, Derived):
            return np.eye(attribute.width)
        n_values = attribute.n_values
        indices = np.linspace(0, n_values - 1, min(most, n_values)).astype(np.int64)
        if attribute.missing and n_values > 1:  # the highest number stands before missing
            indices = np.union1d(indices, [n_values - 2])
        return attribute.codes(np.unique(indices))

    def codes(self, name: str, indices: Counts | None = None) -> Matrix:
        """Give all values of a finite column."""
        attribute = self.space.attribute(name)
        if isinstance(attribute, Derived):
            return np.eye(attribute.width)
        assert not isinstance(attribute, Real)
        return attribute.codes(np.arange(attribute.n_values) if indices is None else indices)

    def _refusal(self, error: Exception) -> NetworkError:
        """Find the value that the preprocessing does not take."""
        told = " ".join(str(error).split())[:300]
        for name in self.roots:
            for code in self.some_codes(name, 1000):
                passes = self._passes(self.varied(name, code[None, :]))
                if passes == self._passes(self.base[None, :]):
                    continue
                blamed = self.base[self.space.columns_of(self.space.attribute(name))]
                value = self.space.attribute(name).decode(blamed if passes else code)
                message = f"{name!r} may be {value!r} in the schema, which the pipeline refuses ({told}); take the value out of the schema, or fit with an encoder that takes it (handle_unknown='ignore') or an imputer"
                return NetworkError(message)
        return NetworkError(f"the pipeline refuses people of this space: {told}{self.text_hint}")

    @property
    def text_hint(self) -> str:
        """Name the columns with texts, which a program may read as booleans or numbers."""
        names = [
            repr(one.name)
            for one in self.space.attributes
            if isinstance(one, Categorical) and isinstance(one.values[0], str)
        ]
        if not names:
            return "; check the schema's columns against the table that the pipeline was trained on"
        return f"; the schema has texts in {', '.join(names)}: if your program reads one as booleans or numbers, write so in [table] (true_values, dtype)"

    def _passes(self, people: Matrix) -> bool:
        try:
            self._run(people)
        except Exception:  # whatever a user's own code raises
            return False
        return True


def _middle(attribute: Attribute) -> Vector:
    assert not isinstance(attribute, Derived)
    if isinstance(attribute, Real):
        middle = attribute.low + (attribute.high - attribute.low) / 2
        return attribute.encode([middle])[0]
    present = attribute.n_values - attribute.missing
    return attribute.codes(np.array([present // 2]))[0]
