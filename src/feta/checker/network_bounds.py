"""Bounds on a network over boxes of one person's counterparts, in integers only.

A row of weights over one layer is replaced by a row over the layer before it, and each neuron by
the line that bounds it in the direction of its weight. At the first layer, the terms of the axes
are minimized one by one. Nothing is rounded.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from feta.arrays import Vector
from feta.checker.box import Box
from feta.checker.exact_network import StoredNetwork
from feta.checker.integers import exact
from feta.checker.lines import Enclosed
from feta.checker.sensitive_axis import SensitiveAxis
from feta.dyadic import Dyadic
from feta.errors import CertificateError
from feta.scorer.protocol import Objective

# Boxes with more values of a category, of bands or of a table are split before they are bounded.
MAX_ROWS = 2**12


@dataclass(frozen=True, slots=True)
class BoxBounds:
    """What is known about an objective over a box."""

    agrees: bool  # the objective is below its level: all counterparts get the same decision
    is_affine: bool  # no neuron changes its piece
    influences: tuple[Fraction, ...]  # how much each axis moves the bound
    is_constant: bool = False  # every score in the box is that of a corner


@dataclass(frozen=True, slots=True, eq=False)
class NetworkBounds:
    """A network on the counterparts of one person."""

    network: StoredNetwork
    person: Vector

    @classmethod
    def of(
        cls, network: StoredNetwork, axes: Sequence[SensitiveAxis], person: Vector
    ) -> "NetworkBounds":
        """Prepare the bounds; raise if a score may jump along a real-valued attribute."""
        for axis in axes:
            if axis.real and not _is_sloped(network, axis):
                raise CertificateError(
                    "the bounds of this certificate cannot be re-checked: got a table of the "
                    f"real-valued attribute {axis.attribute.name!r}; expected a slope"
                )
        return cls(network, person)

    def over(self, box: Box, objective: Objective) -> BoxBounds | None:
        """Bound an objective over a box; None if the box must be split first."""
        if max(self._n_rows(box)) > MAX_ROWS:
            return None
        first = self._first_layer(box)
        enclosed: list[Enclosed] = []
        for layer in self.network.layers:
            lower, upper = self._next_ranges(first, enclosed) if enclosed else first.ranges()
            enclosed.append(Enclosed.of(layer, lower, upper))
        lowest, rows = self._minimize(first, enclosed, -exact(objective.directions))
        highest = objective.offsets - lowest
        agree = highest.compare(exact(objective.level)) < 0
        return BoxBounds(
            bool(agree.any() if objective.least else agree.all()),
            all(layer.is_affine for layer in enclosed),
            first.influences(rows[int(np.argmin(agree))]),
        )

    def _n_rows(self, box: Box) -> list[int]:
        return [
            2 if _is_sloped(self.network, axis) else side
            for axis, side in zip(box.axes, box.sides, strict=True)
        ]

    def _first_layer(self, box: Box) -> "_FirstLayer":
        """Fix the shared columns; list the terms of each axis at its values, or at both ends."""
        moved = {column for axis in box.axes for column in axis.columns}
        shared = [column for column in range(len(self.person)) if column not in moved]
        constant = self.network.terms(self.person[None, shared], shared)[0] + self.network.bias
        terms = []
        for axis, low, high, n_rows, side in zip(
            box.axes, box.lower, box.upper, self._n_rows(box), box.sides, strict=True
        ):
            indices = np.arange(side) if n_rows == side else np.array([0, side - 1])
            terms.append(self.network.terms(axis.codes(low, high, indices), axis.columns))
        return _FirstLayer(constant, tuple(terms))

    def _next_ranges(
        self, first: "_FirstLayer", enclosed: Sequence[Enclosed]
    ) -> tuple[Dyadic, Dyadic]:
        """Bound the values after these layers: by lines, and by the ranges of the last neurons."""
        layer = self.network.layers[len(enclosed) - 1]
        eye = exact(np.eye(len(layer.bias.numerators)))
        by_lines = (
            self._minimize(first, enclosed, eye)[0],
            -self._minimize(first, enclosed, -eye)[0],
        )
        positive, negative = _split(layer.weight)
        lowest, highest = enclosed[-1].lowest, enclosed[-1].highest
        by_ranges = (
            positive @ lowest + negative @ highest + layer.bias,
            positive @ highest + negative @ lowest + layer.bias,
        )
        return _larger(by_lines[0], by_ranges[0]), -_larger(-by_lines[1], -by_ranges[1])

    def _minimize(
        self, first: "_FirstLayer", enclosed: Sequence[Enclosed], rows: Dyadic
    ) -> tuple[Dyadic, Dyadic]:
        """Bound rows · (values after these layers) from below; also return the rows over `first`.

        Without layers, these are the values of the first layer.
        """
        constant = Dyadic(np.zeros(len(rows.numerators), dtype=object), 0)
        pairs = list(zip(enclosed, self.network.layers, strict=False))
        for lines, layer in reversed(pairs):
            constant = constant + rows @ layer.bias
            positive, negative = _split(rows @ layer.weight)
            constant = constant + positive @ lines.low_intercept + negative @ lines.high_intercept
            rows = positive * lines.low_slope + negative * lines.high_slope
        return constant + first.minimum(rows), rows


@dataclass(frozen=True, slots=True, eq=False)
class _FirstLayer:
    """The first layer over a box: a constant, plus one row of the terms of each axis."""

    constant: Dyadic  # (neurons,)
    terms: tuple[Dyadic, ...]  # of each axis, (values, neurons)

    def minimum(self, rows: Dyadic) -> Dyadic:
        """Compute the minimum of rows · values over the box."""
        total = rows @ self.constant
        for terms in self.terms:
            total = total + _least(rows @ terms.mT)
        return total

    def ranges(self) -> tuple[Dyadic, Dyadic]:
        """Compute the exact range of each neuron."""
        lower = upper = self.constant
        for terms in self.terms:
            lower, upper = lower + _least(terms.mT), upper - _least(-terms.mT)
        return lower, upper

    def influences(self, row: Dyadic) -> tuple[Fraction, ...]:
        """Return how much each axis can change row · values."""
        changes = []
        for terms in self.terms:
            products = (terms @ row).fractions()
            changes.append(max(products) - min(products))
        return tuple(changes)


def _is_sloped(network: StoredNetwork, axis: SensitiveAxis) -> bool:
    """Return whether the terms of an axis are a slope times its numbers."""
    return axis.is_line and network.tabled.isdisjoint(axis.columns)


def _least(values: Dyadic) -> Dyadic:
    """Return the smallest number of each row."""
    return Dyadic(np.asarray(values.numerators.min(axis=1), dtype=object), values.exponent)


def _larger(first: Dyadic, second: Dyadic) -> Dyadic:
    """Return the larger of each two numbers."""
    exponent = min(first.exponent, second.exponent)
    return Dyadic(np.maximum(first.at(exponent), second.at(exponent)), exponent)


def _split(weights: Dyadic) -> tuple[Dyadic, Dyadic]:
    """Return the positive and the negative part of each number."""
    positive = np.asarray(np.maximum(weights.numerators, 0), dtype=object)
    negative = np.asarray(np.minimum(weights.numerators, 0), dtype=object)
    return Dyadic(positive, weights.exponent), Dyadic(negative, weights.exponent)
