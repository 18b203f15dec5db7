"""Values that fitted encoders know, and schema values that they never saw.

An encoder that ignores unknown values maps them all to the same features. If a schema lists such
values, or the known ones in another type, an unfair model would look fair.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from feta.errors import ValueMismatch
from feta.io.schema_writer import column_line
from feta.space.attribute import OTHER, Attribute, Categorical, Integer, Levels, Real
from feta.space.cell_values import is_missing

Transformer = Any  # scikit-learn ships no types
Data = Any  # a frame or an array

ENCODERS = ("OneHotEncoder", "OrdinalEncoder", "TargetEncoder")

# Values that a message lists.
MAX_LISTED_VALUES = 8


def is_encoder(step: object) -> bool:
    """Return whether a step is a fitted encoder of categories from scikit-learn."""
    kind = type(step)
    known = kind.__name__ in ENCODERS and kind.__module__.startswith("sklearn.")
    return known and hasattr(step, "categories_")


@dataclass(frozen=True, slots=True, eq=False)
class EncoderInput:
    """One input column of an encoder: its raw column, the known values, and the probes' cells."""

    column: str
    known: tuple[object, ...]
    cells: NDArray[Any]  # one per probe

    def knows(self, cell: object) -> bool:
        """Return whether the encoder saw exactly this value: None is not NaN, and "1" is not 1."""
        if cell is None:
            return any(value is None for value in self.known)
        if is_missing(cell):
            return any(value is not None and is_missing(value) for value in self.known)
        try:
            return cell in self._present
        except TypeError:  # an unhashable cell
            return False

    @property
    def _present(self) -> set[Any]:
        return {value for value in self.known if not is_missing(value)}


def encoder_inputs(
    step: Transformer, columns: Sequence[frozenset[str]], table: Data
) -> Iterator[EncoderInput]:
    """Yield the inputs of an encoder that depend on exactly one raw column."""
    for index, (known, names) in enumerate(zip(step.categories_, columns, strict=True)):
        if len(names) == 1:
            cells = table.iloc[:, index] if hasattr(table, "iloc") else table[:, index]
            values = np.empty(len(cells), dtype=object)
            values[:] = list(cells)
            yield EncoderInput(next(iter(names)), tuple(known.tolist()), values)


@dataclass(frozen=True, slots=True)
class Unseen:
    """Values of a column that the schema allows and an encoder never saw."""

    attribute: Attribute
    values: tuple[object, ...]
    known: tuple[object, ...]

    def error(self) -> ValueMismatch:
        """Return the error for a sensitive column: the model never saw such counterparts."""
        line = self.corrected_line()
        hint = f"write {line}" if line else "list only values that the encoder knows"
        return ValueMismatch(
            f"the schema allows values of the sensitive column {self.attribute.name!r} that the "
            f"model's encoder never saw in training: got {_list_values(self.values)}; "
            f"expected {_list_values(self.known)}; {hint}"
        )

    def notice(self) -> str:
        """Return the warning for a column that is not sensitive."""
        count = len(self.values)
        what = "1 value" if count == 1 else f"{count:,} values"
        return (
            f"column {self.attribute.name!r}: the schema allows {what} that the model's encoder "
            f"never saw in training ({_list_values(self.values)}); the model treats people with "
            "them as of an unknown category"
        )

    def corrected_line(self) -> str:
        """Return the column's schema line with the values that the encoder knows."""
        present = [value for value in self.known if not is_missing(value)]
        missing = len(present) < len(self.known)
        attribute = attribute_of(self.attribute.name, present, sensitive=True, missing=missing)
        return "" if attribute is None else column_line(attribute)


def attribute_of(
    name: str, values: Sequence[object], *, sensitive: bool, missing: bool
) -> Attribute | None:
    """Declare a column by the values that an encoder knows; None if their types differ."""
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


def count_values(attribute: Attribute) -> int | None:
    """Count the values of an attribute; None if they are uncountable."""
    return None if isinstance(attribute, Real) else getattr(attribute, "n_values", None)


def check_known_values_listed(encoder_input: EncoderInput, attribute: Attribute) -> None:
    """Reject other = true if an encoder knows a text that the schema does not list."""
    if not isinstance(attribute, Categorical) or not attribute.other:
        return
    listed = set(attribute.values)
    known = [
        value for value in encoder_input.known if not is_missing(value) and value not in listed
    ]
    if known:
        raise ValueMismatch(
            f"column {attribute.name!r} has other = true, but its values omit some that the "
            f"model's encoder knows: got no {_list_values(known)}; "
            f"add {'it' if len(known) == 1 else 'them'} to values"
        )


def check_other_is_encoded(step: Transformer, where: str, attribute: Attribute) -> None:
    """Reject other = true before a step that may distinguish unlisted texts."""
    if not isinstance(attribute, Categorical) or not attribute.other or is_encoder(step):
        return
    mark = getattr(step, "missing_values", 0)
    imputes = type(step).__name__ == "SimpleImputer" and type(step).__module__.startswith(
        "sklearn."
    )
    if not imputes or not (is_missing(mark) or mark in attribute.values):
        raise ValueMismatch(
            f"column {attribute.name!r} has other = true, but {where} may distinguish texts that "
            "the schema does not list; list all values, or encode the column with "
            "handle_unknown='ignore'"
        )


def _list_values(values: Sequence[object]) -> str:
    texts = [
        "missing" if value is None else _value_text(value) for value in values[:MAX_LISTED_VALUES]
    ]
    rest = f", … ({len(values):,} in all)" if len(values) > MAX_LISTED_VALUES else ""
    return ", ".join(texts) + rest


def _value_text(value: object) -> str:
    if value == OTHER:
        return "another text"
    plain = value.item() if isinstance(value, np.generic) else value
    return "missing (NaN)" if is_missing(plain) else repr(plain)
