"""Exact: scores without any rounding, for the few points that float64 cannot settle.

`ExactNetwork.scores` takes people one by one. `Line.scores` takes counterparts of one person and
groups them by activation pattern: within a pattern the score is one exact affine function of the
sensitive values, so even a whole lattice on the threshold costs a few sums a point.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from feta.arrays import Counts, Flags, Matrix, Vector
from feta.dyadic import Dyadic, stacked
from feta.scorer.network.activation import Pieces
from feta.scorer.network.error_bounds import Bounded
from feta.scorer.network.network import Network
from feta.space.lattice import Axis, Lattice

# Exact tables of axes longer than this are not kept: an entry takes a few hundred bytes.
KEPT_AXIS = 4096


class ExactActivation:
    """An activation's pieces as exact numbers, one column a neuron."""

    def __init__(self, breaks: Matrix, slopes: Matrix, intercepts: Matrix, width: int) -> None:
        self.breaks = Dyadic.of(np.broadcast_to(breaks, (len(breaks), width)))
        self.slopes = Dyadic.of(np.broadcast_to(slopes, (len(slopes), width)))
        self.intercepts = Dyadic.of(np.broadcast_to(intercepts, (len(intercepts), width)))

    def pieces(self, values: Dyadic, neurons: Counts) -> Pieces:
        """Tell which piece each value of these neurons is on; values are (points, neurons)."""
        pieces = np.zeros(values.numerators.shape, dtype=np.int8)
        for at in range(len(self.breaks.numerators)):
            pieces += values.compare(self.breaks[at][neurons]) >= 0
        return pieces


@dataclass(frozen=True, eq=False)
class ExactNetwork:
    """A network's numbers, exact."""

    network: Network

    @cached_property
    def bias(self) -> Dyadic:
        """The first layer's bias."""
        return Dyadic.of(self.network.first.bias)

    @cached_property
    def slopes(self) -> Dyadic:
        """The first layer's slopes."""
        return Dyadic.of(self.network.first.slopes)

    @cached_property
    def layers(self) -> list[tuple[Dyadic, Dyadic]]:
        """The weights and biases of the other layers."""
        return [(Dyadic.of(one.weight), Dyadic.of(one.bias)) for one in self.network.layers]

    @cached_property
    def activations(self) -> list[ExactActivation]:
        """The activations before them."""
        return [
            ExactActivation(one.breaks, one.slopes, one.intercepts, layer.weight.shape[1])
            for one, layer in self.network.steps
        ]

    def terms(self, codes: Matrix, columns: Counts) -> Dyadic:
        """Add up what some columns contribute to the first layer."""
        values = Dyadic.of(codes) @ self.slopes[:, columns].mT
        for table in self.network.first.tables:
            index = np.flatnonzero(columns == table.column)
            if index.size:
                values = values + Dyadic.of(table.rows[table.indices(codes[:, index[0]])])
        return values

    def scores(self, people: Matrix) -> Dyadic:
        """Compute each person's scores, (people, outputs)."""
        values = self.terms(people, np.arange(self.network.width)) + self.bias
        for activation, (weight, bias) in zip(self.activations, self.layers, strict=True):
            neurons = np.arange(weight.numerators.shape[1])
            pieces = activation.pieces(values, neurons)
            bent = (
                values * activation.slopes[pieces, neurons] + activation.intercepts[pieces, neurons]
            )
            values = bent @ weight.mT + bias
        return values


@dataclass(frozen=True, eq=False)
class ExactRestriction:
    """All counterparts of one person: exact first-layer terms of each sensitive value."""

    exact: ExactNetwork
    lattice: Lattice
    person: Vector
    tables: dict[int, Dyadic]  # kept by the model, since they are the same for every person

    @cached_property
    def constant(self) -> Dyadic:
        """What the person's other columns contribute, with the bias."""
        shared = np.setdiff1d(np.arange(self.exact.network.width), self.lattice.columns)
        terms = self.exact.terms(self.person[None, shared], shared)
        return terms[0] + self.exact.bias

    def axis_terms(self, index: int, coordinates: Counts) -> Dyadic:
        """Give what the values at these places of an axis contribute, (values, neurons)."""
        axis = self.lattice.axes[index]
        if len(axis) > KEPT_AXIS:
            return self._terms(axis, coordinates)
        if index not in self.tables:
            self.tables[index] = self._terms(axis, np.arange(len(axis)))
        return self.tables[index][coordinates]

    def _terms(self, axis: Axis, coordinates: Counts) -> Dyadic:
        return self.exact.terms(axis.codes(coordinates), np.array(axis.columns))

    def scores(self, assignment_ids: Counts, trace: list[Bounded]) -> Dyadic:
        """Compute the scores of the counterparts with these numbers, (counterparts, outputs).

        `trace` holds their float64 values layer by layer, which settle most neurons' pieces.
        """
        pieces = self._settled_pieces(assignment_ids, trace)
        outputs = np.arange(self.exact.network.outputs)
        return self._grouped(assignment_ids, pieces, outputs)

    def _settled_pieces(self, assignment_ids: Counts, trace: list[Bounded]) -> list[Pieces]:
        network = self.exact.network
        pieces = [
            activation.pieces(bounded.values, bounded.errors)
            for activation, bounded in zip(network.activations, trace, strict=False)
        ]
        for known, matters in zip(pieces, live_neurons(network, pieces), strict=True):
            known[~matters] = 0  # a neuron nobody listens to must not split the groups
        for depth, known in enumerate(pieces):
            rows = np.flatnonzero((known < 0).any(axis=1))
            if rows.size:
                before = [earlier[rows] for earlier in pieces[:depth]]
                neurons = np.flatnonzero((known[rows] < 0).any(axis=0))
                values = self._grouped(assignment_ids[rows], before, neurons)
                found = self.exact.activations[depth].pieces(values, neurons)
                block = known[np.ix_(rows, neurons)]
                known[np.ix_(rows, neurons)] = np.where(block < 0, found, block)
        return pieces

    def _grouped(self, assignment_ids: Counts, pieces: list[Pieces], neurons: Counts) -> Dyadic:
        """Compute what goes into neurons of one layer, given the pieces of all layers before."""
        parts: list[tuple[Counts, Dyadic]] = []
        for rows in _groups(pieces, len(assignment_ids)):
            pattern = [known[rows[0]] for known in pieces]
            parts.append((rows, self._form_at(assignment_ids[rows], pattern, neurons)))
        return stacked(parts, (len(assignment_ids), len(neurons)))

    def _form_at(self, assignment_ids: Counts, pattern: list[Pieces], neurons: Counts) -> Dyadic:
        slopes, constant = self._pull_back(pattern, neurons)
        total = constant + slopes @ self.constant
        for index, coordinates in enumerate(self.lattice.coordinates(assignment_ids)):
            values, inverse = np.unique(coordinates, return_inverse=True)
            total = total + (self.axis_terms(index, values) @ slopes.mT)[inverse]
        return total

    def _pull_back(self, pattern: list[Pieces], neurons: Counts) -> tuple[Dyadic, Dyadic]:
        """Write neurons as slopes · (first layer) + constant, by the pattern's pieces."""
        if not pattern:
            eye = np.eye(self.exact.network.first.outputs)[neurons]
            return Dyadic.of(eye), Dyadic.of(np.zeros(len(neurons)))
        weight, bias = self.exact.layers[len(pattern) - 1]
        slopes, constant = weight[neurons], bias[neurons]
        for depth in reversed(range(len(pattern))):
            activation = self.exact.activations[depth]
            each = np.arange(len(pattern[depth]))
            constant = constant + slopes @ activation.intercepts[pattern[depth], each]
            slopes = slopes * activation.slopes[pattern[depth], each]
            if depth:
                weight, bias = self.exact.layers[depth - 1]
                constant = constant + slopes @ bias
                slopes = slopes @ weight
        return slopes, constant


def live_neurons(network: Network, pieces: list[Pieces]) -> list[Flags]:
    """Say which neurons can still matter for the scores; an open piece counts as mattering."""
    live: list[Flags] = []
    wanted = np.ones((1, network.outputs), dtype=bool)
    for activation, layer, known in zip(
        reversed(network.activations), reversed(network.layers), reversed(pieces), strict=True
    ):
        heard = wanted.astype(np.float64) @ (layer.weight != 0).astype(np.float64) > 0
        matters = np.broadcast_to(heard, known.shape)
        live.append(matters)
        slopes = np.broadcast_to(activation.slopes, (activation.n_pieces, known.shape[1]))
        bends = slopes[np.maximum(known, 0), np.arange(known.shape[1])] != 0
        wanted = matters & (bends | (known < 0))
    return live[::-1]


def _groups(pieces: list[Pieces], n_points: int) -> list[Counts]:
    """Group points by their activation pattern."""
    if not pieces:
        return [np.arange(n_points)]
    patterns = np.ascontiguousarray(np.hstack(pieces))
    keys = patterns.view([("", np.void, patterns.shape[1])]).ravel()
    order = np.argsort(keys, kind="stable")
    starts = np.flatnonzero(keys[order][1:] != keys[order][:-1]) + 1
    return list(np.split(order.astype(np.int64), starts))
