"""Entry: a network's inputs before its first layer, cut into blocks, scaled, embedded and put together."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np

from feta.arrays import Matrix, Vector
from feta.errors import NetworkError
from feta.scorer.network.fold import rounded
from feta.scorer.network.network import Affine, LookupTable


@dataclass(frozen=True, slots=True, eq=False)
class Signal:
    """One number made of one input column: scaled and shifted, or looked up by the column's number."""

    column: int
    scale: float = 1.0
    shift: float = 0.0
    cancelled_magnitude: float = 0.0  # as in `Columns`
    looked_up: Vector | None = None  # by the numbers 0, 1, …
    cut: str = ""  # the step that converts it to integers, if any: it may only be looked up then
    largest: int | None = None  # the largest integer that survives the conversion; None: any

    @property
    def plain(self) -> bool:
        """Whether it is the column itself."""
        return self.looked_up is None and self.scale == 1.0 and self.shift == 0.0

    def cut_to_integers(self, where: str, largest: int | None = None) -> "Signal":
        """Convert it to integers, of which the source keeps those up to the largest."""
        if not self.plain:
            raise NetworkError(f"{where} must convert a column of the input itself, not scaled")
        if self.largest is not None and (largest is None or self.largest < largest):
            return self
        return replace(self, cut=where, largest=largest)

    def scaled(self, factor: Fraction, shift: Fraction) -> "Signal":
        """Scale and shift it, rounded once."""
        if self.looked_up is not None:
            values = [rounded(Fraction(float(one)) * factor + shift) for one in self.looked_up]
            size = 2 * (abs(float(factor)) * np.abs(self.looked_up).max() + abs(float(shift)))
            return replace(
                self,
                cancelled_magnitude=self.cancelled_magnitude + size,
                looked_up=np.array(values),
            )
        scale = rounded(Fraction(self.scale) * factor)
        moved = rounded(Fraction(self.shift) * factor + shift)
        size = 2 * (
            abs(float(factor)) * (abs(self.shift) + self.cancelled_magnitude) + abs(float(shift))
        )
        return replace(self, scale=scale, shift=moved, cancelled_magnitude=size)


Signals = list[Signal]


def inputs(n_columns: int, start: int = 0) -> Signals:
    """Make the signals that input columns are."""
    return [Signal(column) for column in range(start, start + n_columns)]


def embedded(signals: Signals, weight: Matrix, where: str) -> Signals:
    """Look up rows of an embedding by the numbers in some columns."""
    for one in signals:
        if not one.plain:
            raise NetworkError(f"{where} must look up a column of the input itself, not scaled")
        if one.largest is not None and len(weight) - 1 > one.largest:
            message = f"{one.cut} must keep the numbers that {where} looks up: got a format that holds integers up to {one.largest}, and a table of {len(weight)} rows; convert to int64 instead"
            raise NetworkError(message)
    return [
        Signal(one.column, looked_up=weight[:, output])
        for one in signals
        for output in range(weight.shape[1])
    ]


def refuse_cut(signals: Signals) -> None:
    """Refuse integers that go into a layer as numbers: what their fractions were is not known here."""
    for one in signals:
        if one.cut and one.looked_up is None:
            message = f"{one.cut} cuts column {one.column} to integers, which is read only before a lookup; leave it out, or round the column in the table"
            raise NetworkError(message)


@dataclass
class FirstLayerParts:
    """The first layer W·signals + b, written over the input columns."""

    affine: Affine
    tables: list[LookupTable] = field(default_factory=list)


def first_layer(
    signals: Sequence[Signal], weight: Matrix, bias: Vector, n_columns: int
) -> FirstLayerParts:
    """Fold the signals into the layer that takes them, rounded once."""
    slopes = np.zeros((len(bias), n_columns))
    sums: dict[tuple[int, int], Fraction] = {}
    offset = [Fraction(float(one)) for one in bias]
    cancelled_magnitude = np.zeros(len(bias))
    lookups: dict[int, Matrix] = {}
    for index, one in enumerate(signals):
        share = weight[:, index]
        cancelled_magnitude += np.abs(share) * one.cancelled_magnitude
        if one.looked_up is not None:
            rows = np.outer(one.looked_up, share)
            before = lookups.get(one.column, np.zeros_like(rows))
            if len(before) != len(rows):
                raise NetworkError(f"column {one.column} must be embedded by tables of one length")
            lookups[one.column] = before + rows
            continue
        for neuron in np.flatnonzero(share):
            exact = Fraction(float(share[neuron]))
            key = (int(neuron), one.column)
            sums[key] = sums.get(key, Fraction(0)) + exact * Fraction(one.scale)
            offset[neuron] += exact * Fraction(one.shift)
            cancelled_magnitude[neuron] += 2 * abs(share[neuron] * one.shift)
    for (row, column), value in sums.items():
        slopes[row, column] = rounded(value)
    tables = []
    for column, rows in sorted(lookups.items()):
        codes = np.arange(len(rows), dtype=np.float64)
        # A column that is embedded and used as a number, too, has both in its table.
        whole = rows + np.outer(codes, slopes[:, column])
        cancelled_magnitude += 2 * np.abs(rows).max(axis=0)
        slopes[:, column] = 0.0
        tables.append(LookupTable(column, codes, whole))
    new_bias = np.array([rounded(one) for one in offset])
    return FirstLayerParts(Affine(slopes, new_bias, cancelled_magnitude), tables)
