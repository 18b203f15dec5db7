"""Known values: what the encoders of a fitted pipeline know about the raw columns, before a schema exists."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from feta.absorb.encoders import is_encoder
from feta.io.column_format import ColumnFormat, Marker
from feta.space.cell_values import is_missing

Transformer = Any  # scikit-learn ships no types


@dataclass(frozen=True, slots=True)
class KnownValues:
    """The values of a raw column that an encoder saw in training, and how it knows a missing cell."""

    values: tuple[object, ...]  # without missing ones
    marker: Marker | None
    takes_unknown: bool  # whether the encoder takes values that it never saw
    filled: bool  # whether an imputer before it fills missing cells

    @property
    def as_text(self) -> bool:
        """Whether the encoder knows texts."""
        return bool(self.values) and all(isinstance(value, str) for value in self.values)


def known_values(steps: Transformer, names: Sequence[str]) -> dict[str, KnownValues]:
    """Find, for each raw column that goes to an encoder as it is, what the encoder knows.

    Where several encoders read a column, the values that all of them know are listed.
    """
    found: dict[str, KnownValues] = {}
    _visit(steps, list(names), frozenset(), found)
    return found


def marker_formats(steps: Transformer, names: Sequence[str]) -> dict[str, ColumnFormat]:
    """Return formats of the columns in which an encoder knows None, which pandas would not write."""
    known = known_values(steps, names)
    return {
        name: ColumnFormat(np.dtype(object), "mixed", "None")
        for name, one in known.items()
        if one.marker == "None"
    }


Names = list[str | None]


def _visit(
    step: Transformer, names: Names, filled: frozenset[str], found: dict[str, KnownValues]
) -> tuple[Names, frozenset[str]] | None:
    """Follow raw columns through a step; None where the columns after it are no raw ones."""
    kind = type(step).__name__
    if step is None or isinstance(step, str):
        return None if step == "drop" else (names, filled)
    if kind == "FrozenEstimator":
        return _visit(step.estimator, names, filled, found)
    if kind == "Pipeline":
        return _in_turn([part for _, part in step.steps], names, filled, found)
    if kind == "ColumnTransformer":
        for name, part, _ in step.transformers_:
            indices = list(step._transformer_to_input_indices.get(name, []))  # noqa: SLF001 - there is no public name
            _visit(part, [names[index] for index in indices], filled, found)
        return None
    if kind == "FeatureUnion":
        for _, part in step.transformer_list:
            _visit(part, names, filled, found)
        return None
    if kind == "SimpleImputer" and len(step.statistics_) == len(names) and step.indicator_ is None:
        return names, filled | {name for name in names if name is not None}
    if is_encoder(step):
        _note(step, names, filled, found)
    return None


def _in_turn(
    steps: Sequence[Transformer],
    names: Names,
    filled: frozenset[str],
    found: dict[str, KnownValues],
) -> tuple[Names, frozenset[str]] | None:
    for part in steps:
        after = _visit(part, names, filled, found)
        if after is None:
            return None
        names, filled = after
    return names, filled


def _note(
    encoder: Transformer, names: Names, filled: frozenset[str], found: dict[str, KnownValues]
) -> None:
    for name, categories in zip(names, encoder.categories_, strict=False):
        if name is None:
            continue
        values = categories.tolist()
        present = tuple(value for value in values if not is_missing(value))
        gone = [value for value in values if is_missing(value)]
        marker: Marker | None = ("None" if gone[0] is None else "NaN") if gone else None
        takes = getattr(encoder, "handle_unknown", "ignore") != "error"
        one = KnownValues(present, marker, takes, name in filled)
        found[name] = one if name not in found else _both(found[name], one)


def _both(one: KnownValues, other: KnownValues) -> KnownValues:
    values = tuple(value for value in one.values if value in other.values)
    takes, filled = one.takes_unknown and other.takes_unknown, one.filled and other.filled
    return KnownValues(values, one.marker or other.marker, takes, filled)
