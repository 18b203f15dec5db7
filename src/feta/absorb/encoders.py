"""Encoders: which values a fitted encoder knows, and what of a schema it has never seen.

An encoder that ignores unknown values treats them all the same. A schema that lists such values, or the
right ones in another type, would make a model look fair that is not.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from feta.errors import NetworkError
from feta.io.schema_file import column_line
from feta.space.attribute import OTHER, Attribute, Categorical, Integer, Levels, Real
from feta.space.cell_values import is_missing

Transformer = Any  # scikit-learn ships no types
Data = Any  # a frame or an array

ENCODERS = ("OneHotEncoder", "OrdinalEncoder", "TargetEncoder")

# Values that a message spells out.
SHOWN = 8


def is_encoder(step: object) -> bool:
    """Return whether a step is one of scikit-learn's encoders of categories, and fitted."""
    kind = type(step)
    known = kind.__name__ in ENCODERS and kind.__module__.startswith("sklearn.")
    return known and hasattr(step, "categories_")


@dataclass(frozen=True, slots=True, eq=False)
class EncoderInput:
    """One column of an encoder: the raw column behind it, the values it knows, the cells it was given."""

    column: str
    known: tuple[object, ...]
    cells: NDArray[Any]  # one per row of the probes

    def knows(self, cell: object) -> bool:
        """Return whether the encoder saw this very value: None is not NaN, and "1" is not 1."""
        if cell is None:
            return any(one is None for one in self.known)
        if is_missing(cell):
            return any(one is not None and is_missing(one) for one in self.known)
        try:
            return cell in self._present
        except TypeError:  # an unhashable cell
            return False

    @property
    def _present(self) -> set[Any]:
        return {one for one in self.known if not is_missing(one)}


def encoder_inputs(
    step: Transformer, columns: Sequence[frozenset[str]], table: Data
) -> Iterator[EncoderInput]:
    """List the inputs of an encoder that depend on one raw column each."""
    for index, (known, names) in enumerate(zip(step.categories_, columns, strict=True)):
        if len(names) == 1:
            cells = table.iloc[:, index] if hasattr(table, "iloc") else table[:, index]
            values = np.empty(len(cells), dtype=object)
            values[:] = list(cells)
            yield EncoderInput(next(iter(names)), tuple(known.tolist()), values)


@dataclass(frozen=True, slots=True)
class Unseen:
    """Values of a column that the schema allows and an encoder has never seen."""

    attribute: Attribute
    values: tuple[object, ...]
    known: tuple[object, ...]

    def error(self) -> NetworkError:
        """Refuse them in a sensitive column: its counterparts would be people the model never met."""
        message = f"the sensitive column {self.attribute.name!r} may be {_listed(self.values)} in the schema, which the model's encoder never saw in training; it knows {_listed(self.known)}"
        line = self.corrected()
        hint = f"; write {line}" if line else "; list only values that the encoder knows"
        return NetworkError(message + hint)

    def notice(self) -> str:
        """Say so of another column."""
        count = len(self.values)
        what = "1 value" if count == 1 else f"{count:,} values"
        return f"column {self.attribute.name!r}: the schema allows {what} that the model's encoder never saw in training ({_listed(self.values)}); the model treats people with them as of an unknown category"

    def corrected(self) -> str:
        """Write the schema's line with the values that the encoder knows."""
        present = [one for one in self.known if not is_missing(one)]
        missing = len(present) < len(self.known)
        attribute = attribute_of(self.attribute.name, present, sensitive=True, missing=missing)
        return "" if attribute is None else column_line(attribute)


def attribute_of(
    name: str, values: Sequence[object], *, sensitive: bool, missing: bool
) -> Attribute | None:
    """Declare a column by the values that an encoder knows; None where they are of several kinds."""
    plain: list[Any] = [
        value.item() if isinstance(value, np.generic) else value for value in values
    ]
    if not plain:
        return None
    if all(isinstance(value, bool | str) for value in plain) and len({type(v) for v in plain}) == 1:
        return Categorical(name, tuple(plain), sensitive, missing)
    if any(isinstance(value, bool) or not isinstance(value, int | float) for value in plain):
        return None
    numbers = sorted(float(value) for value in plain)
    if not np.isfinite(numbers).all():
        return None
    low, high = numbers[0], numbers[-1]
    if all(number == np.floor(number) for number in numbers) and high - low == len(numbers) - 1:
        return Integer(name, int(low), int(high), sensitive, missing)
    return Levels(name, tuple(numbers), sensitive, missing)


def values_of(attribute: Attribute) -> int | None:
    """Count the values of an attribute; None where it has uncountably many."""
    return None if isinstance(attribute, Real) else getattr(attribute, "n_values", None)


def refuse_known(given: EncoderInput, attribute: Attribute) -> None:
    """Refuse other = true where an encoder knows a text that the schema does not list."""
    if not isinstance(attribute, Categorical) or not attribute.other:
        return
    listed = set(attribute.values)
    known = [one for one in given.known if not is_missing(one) and one not in listed]
    if known:
        message = f"column {attribute.name!r} has other = true, but the model's encoder knows {_listed(known)}, which the schema does not list; add {'it' if len(known) == 1 else 'them'} to values"
        raise NetworkError(message)


def refuse_other(step: Transformer, where: str, attribute: Attribute) -> None:
    """Refuse other = true before a step that need not treat all unlisted texts the same."""
    if not isinstance(attribute, Categorical) or not attribute.other or is_encoder(step):
        return
    mark = getattr(step, "missing_values", 0)
    imputes = type(step).__name__ == "SimpleImputer" and type(step).__module__.startswith(
        "sklearn."
    )
    if not imputes or not (is_missing(mark) or mark in attribute.values):
        message = f"column {attribute.name!r} has other = true, but {where} may treat texts that the schema does not list differently; list all values, or encode the column with handle_unknown='ignore'"
        raise NetworkError(message)


def _listed(values: Sequence[object]) -> str:
    shown = ", ".join("missing" if one is None else _shown(one) for one in values[:SHOWN])
    return shown + (f", … ({len(values):,} in all)" if len(values) > SHOWN else "")


def _shown(value: object) -> str:
    if value == OTHER:
        return "another text"
    plain = value.item() if isinstance(value, np.generic) else value
    return "missing (NaN)" if is_missing(plain) else repr(plain)
