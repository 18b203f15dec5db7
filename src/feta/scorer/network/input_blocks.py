"""Inputs of a network before its first layer: split into blocks, scaled, embedded, concatenated."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np

from feta.arrays import Matrix, Vector
from feta.errors import NetworkError
from feta.scorer.network.fold import rounded
from feta.scorer.network.layers import Affine, LookupTable


@dataclass(frozen=True, slots=True, eq=False)
class Signal:
    """A number computed from one input column: scaled and shifted, or looked up in a table."""

    column: int
    scale: float = 1.0
    shift: float = 0.0
    cancelled_magnitude: float = 0.0  # as in `Columns`
    looked_up: Vector | None = None  # indexed by the column: 0, 1, …
    cut: str = ""  # the step that truncates it to integers; it can then only be looked up
    largest: int | None = None  # the largest integer that the conversion preserves; None: any

    @property
    def plain(self) -> bool:
        """Whether it is the unchanged column."""
        return self.looked_up is None and self.scale == 1.0 and self.shift == 0.0

    def cut_to_integers(self, where: str, largest: int | None = None) -> "Signal":
        """Truncate the signal to integers; the source preserves those up to the largest."""
        if not self.plain:
            raise NetworkError(_not_plain(where))
        if self.largest is not None and (largest is None or self.largest < largest):
            return self
        return replace(self, cut=where, largest=largest)

    def scaled(self, factor: Fraction, shift: Fraction) -> "Signal":
        """Scale and shift the signal, rounded once."""
        if self.looked_up is not None:
            values = [rounded(Fraction(float(entry)) * factor + shift) for entry in self.looked_up]
            size = 2 * (abs(float(factor)) * np.abs(self.looked_up).max() + abs(float(shift)))
            return replace(
                self,
                cancelled_magnitude=self.cancelled_magnitude + size,
                looked_up=np.array(values),
            )
        scale = rounded(Fraction(self.scale) * factor)
        offset = rounded(Fraction(self.shift) * factor + shift)
        size = 2 * (
            abs(float(factor)) * (abs(self.shift) + self.cancelled_magnitude) + abs(float(shift))
        )
        return replace(self, scale=scale, shift=offset, cancelled_magnitude=size)


Signals = list[Signal]


def inputs(n_columns: int, start: int = 0) -> Signals:
    """Return the signals of consecutive input columns."""
    return [Signal(column) for column in range(start, start + n_columns)]


def embedded(signals: Signals, weight: Matrix, where: str) -> Signals:
    """Look up each column in an embedding."""
    for signal in signals:
        if not signal.plain:
            raise NetworkError(_not_plain(where))
        if signal.largest is not None and len(weight) - 1 > signal.largest:
            raise NetworkError(
                f"invalid format of {signal.cut}: got one that holds integers up to "
                f"{signal.largest}; expected one for the table of {len(weight)} rows that {where} "
                "looks up; convert to int64 instead"
            )
    return [
        Signal(signal.column, looked_up=weight[:, output])
        for signal in signals
        for output in range(weight.shape[1])
    ]


def refuse_cut(signals: Signals) -> None:
    """Reject truncated signals that a layer reads as numbers: truncation is not continuous."""
    for signal in signals:
        if signal.cut and signal.looked_up is None:
            raise NetworkError(
                f"{signal.cut} truncates column {signal.column} to integers, which is supported "
                "only before a lookup; remove it, or round the column in the table"
            )


def _not_plain(where: str) -> str:
    return f"invalid input of {where}: got a computed value; expected a column of the input"


@dataclass
class FirstLayerParts:
    """The first layer W·signals + b as a function of the input columns."""

    affine: Affine
    tables: list[LookupTable] = field(default_factory=list)


def first_layer(
    signals: Sequence[Signal], weight: Matrix, bias: Vector, n_columns: int
) -> FirstLayerParts:
    """Fold the signals into the layer that reads them, rounded once."""
    slopes = np.zeros((len(bias), n_columns))
    sums: dict[tuple[int, int], Fraction] = {}
    offset = [Fraction(float(number)) for number in bias]
    cancelled_magnitude = np.zeros(len(bias))
    lookups: dict[int, Matrix] = {}
    # The source adds one term per signal, but error bounds count one per column.
    share = max(1.0, len(signals) / n_columns)
    for index, signal in enumerate(signals):
        slope = weight[:, index]
        cancelled_magnitude += np.abs(slope) * signal.cancelled_magnitude
        if signal.looked_up is not None:
            rows = np.outer(signal.looked_up, slope)
            # Terms of one table may cancel, so each of them counts.
            largest = np.abs(signal.looked_up).max(initial=0.0)
            cancelled_magnitude += 2 * share * np.abs(slope) * largest
            before = lookups.get(signal.column, np.zeros_like(rows))
            if len(before) != len(rows):
                raise NetworkError(
                    f"conflicting embeddings of column {signal.column}: got tables of "
                    f"{len(before)} and {len(rows)} rows; expected tables of one length"
                )
            lookups[signal.column] = before + rows
            continue
        for neuron in np.flatnonzero(slope):
            exact = Fraction(float(slope[neuron]))
            key = (int(neuron), signal.column)
            sums[key] = sums.get(key, Fraction(0)) + exact * Fraction(signal.scale)
            offset[neuron] += exact * Fraction(signal.shift)
            cancelled_magnitude[neuron] += 2 * abs(slope[neuron] * signal.shift)
    for (row, column), value in sums.items():
        slopes[row, column] = rounded(value)
    tables = []
    for column, rows in sorted(lookups.items()):
        codes = np.arange(len(rows), dtype=np.float64)
        # The table of a column that is embedded and also used as a number contains both terms.
        entries = rows + np.outer(codes, slopes[:, column])
        slopes[:, column] = 0.0
        tables.append(LookupTable(column, codes, entries))
    new_bias = np.array([rounded(number) for number in offset])
    return FirstLayerParts(Affine(slopes, new_bias, cancelled_magnitude), tables)
