"""Values of raw columns that the encoders of a fitted pipeline know, without a schema."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from feta.absorb.encoders import is_encoder
from feta.io.column_format import ColumnFormat, Marker
from feta.space.cell_values import is_missing

Transformer = Any  # scikit-learn ships no types
Names = list[str | None]


@dataclass(frozen=True, slots=True)
class KnownValues:
    """The values of a raw column that an encoder saw in training, and its marker for missing."""

    values: tuple[object, ...]  # without missing ones
    marker: Marker | None
    takes_unknown: bool  # whether the encoder accepts values that it never saw
    filled: bool  # whether an imputer before it fills missing cells

    @property
    def as_text(self) -> bool:
        """Whether all known values are texts."""
        return bool(self.values) and all(isinstance(value, str) for value in self.values)

    def intersection(self, other: "KnownValues") -> "KnownValues":
        """Return what both of two encoders of one column know."""
        values = tuple(value for value in self.values if value in other.values)
        takes = self.takes_unknown and other.takes_unknown
        return KnownValues(values, self.marker or other.marker, takes, self.filled and other.filled)


def known_values(steps: Transformer, names: Sequence[str]) -> dict[str, KnownValues]:
    """Return what the encoders know about each raw column that reaches them unchanged.

    If several encoders read a column, only the values that all of them know are listed.
    """
    columns: dict[str, KnownValues] = {}
    _visit(steps, list(names), frozenset(), columns)
    return columns


def marker_formats(steps: Transformer, names: Sequence[str]) -> dict[str, ColumnFormat]:
    """Return formats for the columns whose encoder knows None; pandas would write NaN."""
    columns = known_values(steps, names)
    return {
        name: ColumnFormat(np.dtype(object), "mixed", "None")
        for name, known in columns.items()
        if known.marker == "None"
    }


def _visit(
    step: Transformer, names: Names, filled: frozenset[str], columns: dict[str, KnownValues]
) -> tuple[Names, frozenset[str]] | None:
    """Follow raw columns through a step; return None if its outputs are not raw columns."""
    kind = type(step).__name__
    if step is None or isinstance(step, str):
        return None if step == "drop" else (names, filled)
    if kind == "FrozenEstimator":
        return _visit(step.estimator, names, filled, columns)
    if kind == "Pipeline":
        return _visit_sequence([part for _, part in step.steps], names, filled, columns)
    if kind == "ColumnTransformer":
        for name, part, _ in step.transformers_:
            indices = list(step._transformer_to_input_indices.get(name, []))  # noqa: SLF001 - there is no public name
            _visit(part, [names[index] for index in indices], filled, columns)
        return None
    if kind == "FeatureUnion":
        for _, part in step.transformer_list:
            _visit(part, names, filled, columns)
        return None
    if kind == "SimpleImputer" and len(step.statistics_) == len(names) and step.indicator_ is None:
        return names, filled | {name for name in names if name is not None}
    if is_encoder(step):
        _add_encoder(step, names, filled, columns)
    return None


def _visit_sequence(
    steps: Sequence[Transformer],
    names: Names,
    filled: frozenset[str],
    columns: dict[str, KnownValues],
) -> tuple[Names, frozenset[str]] | None:
    for step in steps:
        after = _visit(step, names, filled, columns)
        if after is None:
            return None
        names, filled = after
    return names, filled


def _add_encoder(
    encoder: Transformer, names: Names, filled: frozenset[str], columns: dict[str, KnownValues]
) -> None:
    """Record what an encoder knows about its columns."""
    for name, categories in zip(names, encoder.categories_, strict=False):
        if name is None:
            continue
        values = categories.tolist()
        present = tuple(value for value in values if not is_missing(value))
        absent = [value for value in values if is_missing(value)]
        marker: Marker | None = ("None" if absent[0] is None else "NaN") if absent else None
        takes_unknown = getattr(encoder, "handle_unknown", "ignore") != "error"
        known = KnownValues(present, marker, takes_unknown, name in filled)
        columns[name] = known if name not in columns else columns[name].intersection(known)
