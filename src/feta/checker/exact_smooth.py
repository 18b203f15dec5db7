"""Scores of a network with smooth activations, from its stored numbers: one person at a time.

Numbers are intervals of fractions, rounded outward after each layer. Two people whose scores are
closer than that cannot be re-checked.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from feta.arrays import Array, Matrix
from feta.checker.exact_network import StoredNetwork, StoredTable, parts_of
from feta.checker.integers import exact
from feta.checker.smooth_functions import FUNCTIONS, Interval, enclose
from feta.dyadic import Dyadic
from feta.errors import CertificateError
from feta.scorer.exact_scores import ExactScores
from feta.scorer.protocol import StoredScorer

SMOOTH = "smooth network"

# Ends of intervals are rounded outward to multiples of 2^-BITS.
BITS = 1100


@dataclass(frozen=True, slots=True, eq=False)
class StoredStep:
    """An activation, smooth or of pieces, then weight · values + bias."""

    function: str  # empty for pieces
    parameter: Fraction
    on: tuple[float, ...]  # of the function: 1 for each neuron that it changes; empty: all
    pieces: tuple[list[list[Fraction]], ...]  # breaks, slopes, intercepts, (pieces, neurons or 1)
    weight: list[list[Fraction]]
    bias: list[Fraction]

    @classmethod
    def of(cls, arrays: dict[str, Array]) -> "StoredStep":
        """Convert the arrays of a layer."""
        function, parameter = "", Fraction(1)
        on: tuple[float, ...] = ()
        pieces: tuple[list[list[Fraction]], ...] = ()
        if "function" in arrays:
            function = bytes(arrays["function"].tolist()).decode()
            parameter = Fraction(float(arrays["parameter"].item()))
            if function not in FUNCTIONS:
                raise CertificateError(
                    f"unknown activation in what is re-checked: got {function!r}; expected one of "
                    f"{', '.join(map(repr, FUNCTIONS))}"
                )
            on = tuple(arrays["on"].tolist()) if "on" in arrays else ()
            if on and (len(on) != np.shape(arrays["weight"])[1] or not set(on) <= {0.0, 1.0}):
                raise CertificateError(
                    f"invalid neurons of the activation {function!r} in what is re-checked: got "
                    f"{len(on)} numbers; expected 0 or 1 for each neuron"
                )
        else:
            pieces = tuple(_fractions(arrays[name]) for name in ("breaks", "slopes", "intercepts"))
        bias = [Fraction(number) for number in arrays["bias"].tolist()]
        return cls(function, parameter, on, pieces, _fractions(arrays["weight"]), bias)

    def apply(self, values: Sequence[Interval]) -> list[Interval]:
        """Return intervals of the layer's values."""
        activated = [self._activate(ends, neuron) for neuron, ends in enumerate(values)]
        result = []
        for weights, bias in zip(self.weight, self.bias, strict=True):
            low = high = bias
            for weight, (least, most) in zip(weights, activated, strict=True):
                low += weight * (least if weight > 0 else most)
                high += weight * (most if weight > 0 else least)
            result.append(_rounded(low, high))
        return result

    def _activate(self, ends: Interval, neuron: int) -> Interval:
        if self.function:
            if self.on and not self.on[neuron]:
                return ends
            return enclose(self.function, ends, self.parameter)
        breaks, slopes, intercepts = (
            [row[neuron % len(row)] for row in part] for part in self.pieces
        )

        def at(number: Fraction) -> Fraction:
            piece = sum(1 for place in breaks if number >= place)
            return slopes[piece] * number + intercepts[piece]

        inside = [place for place in breaks if ends[0] < place < ends[1]]
        found = [at(number) for number in (*ends, *inside)]
        return min(found), max(found)


@dataclass(frozen=True, slots=True, eq=False)
class StoredSmoothNetwork:
    """A first layer of slopes and tables, then steps."""

    first: StoredNetwork
    steps: tuple[StoredStep, ...]

    @classmethod
    def of(cls, stored: StoredScorer) -> "StoredSmoothNetwork":
        """Convert the arrays that `Network.stored` describes."""
        tables = tuple(StoredTable.of(part) for part in parts_of(stored, "table", first=0))
        steps = tuple(StoredStep.of(part) for part in parts_of(stored, "layer", first=1))
        arrays = stored.arrays
        first = StoredNetwork(exact(arrays["bias"]), exact(arrays["slopes"]), tables, ())
        return cls(first, steps)

    def scores(self, people: Matrix) -> ExactScores:
        """Compute intervals that contain the scores of people, (people, outputs)."""
        inputs = self.first.scores(people).centers
        width = inputs.numerators.shape[1]
        exact_numbers = inputs.fractions()
        ends: list[Interval] = []
        outputs = 0
        for start in range(0, len(exact_numbers), width):
            values = [(number, number) for number in exact_numbers[start : start + width]]
            for step in self.steps:
                values = step.apply(values)
            outputs = len(values)
            ends += values
        return _scores(ends, (len(people), outputs))


def _fractions(array: Array) -> list[list[Fraction]]:
    return [[Fraction(number) for number in row] for row in np.atleast_2d(array).tolist()]


def _rounded(low: Fraction, high: Fraction) -> Interval:
    scale = 2**BITS
    return Fraction((low * scale).__floor__(), scale), Fraction((high * scale).__ceil__(), scale)


def _scores(ends: Sequence[Interval], shape: tuple[int, int]) -> ExactScores:
    lows = [int((low * 2**BITS).__floor__()) for low, _ in ends]
    highs = [int((high * 2**BITS).__ceil__()) for _, high in ends]
    centers = [low + high for low, high in zip(lows, highs, strict=True)]
    radii = [high - low for low, high in zip(lows, highs, strict=True)]
    return ExactScores(
        Dyadic(np.array(centers, dtype=object).reshape(shape), -BITS - 1),
        Dyadic(np.array(radii, dtype=object).reshape(shape), -BITS - 1),
    )
