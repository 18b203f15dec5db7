"""Exact scores, for the few points that float64 cannot decide.

`ExactNetwork.scores` evaluates people one by one. `ExactRestriction.scores` evaluates counterparts
of one person and groups them by activation pattern. Within a pattern, the score is one exact affine
function of the sensitive values. So even if a whole lattice is on the threshold, each point costs a
few sums only.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from feta.arrays import Counts, Flags, Matrix, Vector
from feta.dyadic import Dyadic, join_rows
from feta.scorer.network.activation import Pieces
from feta.scorer.network.native_bounds import NativeBounds
from feta.scorer.network.native_exact import NativeExact
from feta.scorer.protocol import Enclosure
from feta.space.axis import Axis
from feta.space.lattice import Lattice

if TYPE_CHECKING:
    from feta.scorer.network.network import Network

# Exact tables of longer axes are not cached: an entry takes a few hundred bytes.
MAX_CACHED_AXIS = 4096


class ExactActivation:
    """The pieces of an activation as exact numbers, one column per neuron."""

    def __init__(self, breaks: Matrix, slopes: Matrix, intercepts: Matrix, width: int) -> None:
        self.breaks = Dyadic.of(np.broadcast_to(breaks, (len(breaks), width)))
        self.slopes = Dyadic.of(np.broadcast_to(slopes, (len(slopes), width)))
        self.intercepts = Dyadic.of(np.broadcast_to(intercepts, (len(intercepts), width)))

    def pieces(self, values: Dyadic, neurons: Counts) -> Pieces:
        """Return the piece of each value; values are (points, neurons)."""
        pieces = np.zeros(values.numerators.shape, dtype=np.int8)
        for index in range(len(self.breaks.numerators)):
            pieces += values.compare(self.breaks[index][neurons]) >= 0
        return pieces


@dataclass(frozen=True, eq=False)
class ExactNetwork:
    """A network in exact arithmetic."""

    network: "Network"

    @cached_property
    def bias(self) -> Dyadic:
        """The bias of the first layer."""
        return Dyadic.of(self.network.first.bias)

    @cached_property
    def slopes(self) -> Dyadic:
        """The slopes of the first layer."""
        return Dyadic.of(self.network.first.slopes)

    @cached_property
    def layers(self) -> list[tuple[Dyadic, Dyadic]]:
        """The weights and biases of the other layers."""
        return [(Dyadic.of(layer.weight), Dyadic.of(layer.bias)) for layer in self.network.layers]

    @cached_property
    def activations(self) -> list[ExactActivation]:
        """The activations before them."""
        return [
            ExactActivation(
                activation.breaks,
                activation.slopes,
                activation.intercepts,
                layer.weight.shape[1],
            )
            for activation, layer in self.network.steps
        ]

    def terms(self, codes: Matrix, columns: Counts) -> Dyadic:
        """Return the sum of the first-layer terms of some columns."""
        values = Dyadic.of(codes) @ self.slopes[:, columns].mT
        for table in self.network.first.tables:
            index = np.flatnonzero(columns == table.column)
            if index.size:
                values = values + Dyadic.of(table.rows[table.indices(codes[:, index[0]])])
        return values

    @cached_property
    def native(self) -> NativeExact:
        """The same network in the compiled kernel."""
        return NativeExact(self.network)

    @cached_property
    def native_bounds(self) -> NativeBounds:
        """The same network in the compiled kernel, in float64 with error bounds."""
        return NativeBounds(self.network)

    def scores(self, people: Matrix) -> Dyadic:
        """Compute the scores of people, (people, outputs)."""
        scores = self.native.scores(people)
        return self.scores_in_python(people) if scores is None else scores

    def scores_in_python(self, people: Matrix) -> Dyadic:
        """Compute the scores of people without the kernel."""
        values = self.terms(people, np.arange(self.network.width)) + self.bias
        for activation, (weight, bias) in zip(self.activations, self.layers, strict=True):
            neurons = np.arange(weight.numerators.shape[1])
            pieces = activation.pieces(values, neurons)
            activated = (
                values * activation.slopes[pieces, neurons] + activation.intercepts[pieces, neurons]
            )
            values = activated @ weight.mT + bias
        return values


@dataclass(frozen=True, eq=False)
class ExactRestriction:
    """All counterparts of one person, with exact first-layer terms of each sensitive value."""

    exact: ExactNetwork
    lattice: Lattice
    person: Vector
    tables: dict[int, Dyadic]  # a cache of the model: they are the same for all people

    @cached_property
    def constant(self) -> Dyadic:
        """The terms of the shared columns, and the bias."""
        shared = np.setdiff1d(np.arange(self.exact.network.width), self.lattice.columns)
        terms = self.exact.terms(self.person[None, shared], shared)
        return terms[0] + self.exact.bias

    def axis_terms(self, index: int, coordinates: Counts) -> Dyadic:
        """Return the terms of the values at these coordinates of an axis, (values, neurons)."""
        axis = self.lattice.axes[index]
        if len(axis) > MAX_CACHED_AXIS:
            return self._terms(axis, coordinates)
        if index not in self.tables:
            self.tables[index] = self._terms(axis, np.arange(len(axis)))
        return self.tables[index][coordinates]

    def _terms(self, axis: Axis, coordinates: Counts) -> Dyadic:
        return self.exact.terms(axis.codes(coordinates), np.array(axis.columns))

    def scores(self, assignment_ids: Counts, trace: list[Enclosure]) -> Dyadic:
        """Compute the scores of the counterparts with these assignments, (counterparts, outputs).

        `trace` contains their float64 values of each layer, which decide most neurons' pieces.
        """
        pieces = self._decide_pieces(assignment_ids, trace)
        outputs = np.arange(self.exact.network.outputs)
        return self._evaluate(assignment_ids, pieces, outputs)

    def _decide_pieces(self, assignment_ids: Counts, trace: list[Enclosure]) -> list[Pieces]:
        network = self.exact.network
        pieces = [
            activation.pieces(bounded.values, bounded.errors)
            for activation, bounded in zip(network.activations, trace, strict=False)
        ]
        for known, relevant in zip(pieces, live_neurons(network, pieces), strict=True):
            known[~relevant] = 0  # a neuron that affects no score must not split the groups
        for depth, known in enumerate(pieces):
            rows = np.flatnonzero((known < 0).any(axis=1))
            if rows.size:
                before = [earlier[rows] for earlier in pieces[:depth]]
                neurons = np.flatnonzero((known[rows] < 0).any(axis=0))
                values = self._evaluate(assignment_ids[rows], before, neurons)
                exact = self.exact.activations[depth].pieces(values, neurons)
                block = known[np.ix_(rows, neurons)]
                known[np.ix_(rows, neurons)] = np.where(block < 0, exact, block)
        return pieces

    def _evaluate(self, assignment_ids: Counts, pieces: list[Pieces], neurons: Counts) -> Dyadic:
        """Compute the inputs of neurons in one layer, given the pieces of all layers before."""
        parts: list[tuple[Counts, Dyadic]] = []
        for rows in _group_by_pattern(pieces, len(assignment_ids)):
            pattern = [known[rows[0]] for known in pieces]
            parts.append((rows, self._evaluate_pattern(assignment_ids[rows], pattern, neurons)))
        return join_rows(parts, (len(assignment_ids), len(neurons)))

    def _evaluate_pattern(
        self, assignment_ids: Counts, pattern: list[Pieces], neurons: Counts
    ) -> Dyadic:
        slopes, constant = self._pull_back(pattern, neurons)
        total = constant + slopes @ self.constant
        for index, coordinates in enumerate(self.lattice.coordinates(assignment_ids)):
            values, inverse = np.unique(coordinates, return_inverse=True)
            total = total + (self.axis_terms(index, values) @ slopes.mT)[inverse]
        return total

    def _pull_back(self, pattern: list[Pieces], neurons: Counts) -> tuple[Dyadic, Dyadic]:
        """Return neurons as slopes · (first layer) + constant, for one activation pattern."""
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


def live_neurons(network: "Network", pieces: list[Pieces]) -> list[Flags]:
    """Return which neurons can affect the scores; a neuron with an unknown piece can."""
    live: list[Flags] = []
    outputs_used = np.ones((1, network.outputs), dtype=bool)
    for activation, layer, known in zip(
        reversed(network.activations), reversed(network.layers), reversed(pieces), strict=True
    ):
        used = outputs_used.astype(np.float64) @ (layer.weight != 0).astype(np.float64) > 0
        relevant = np.broadcast_to(used, known.shape)
        live.append(relevant)
        slopes = np.broadcast_to(activation.slopes, (activation.n_pieces, known.shape[1]))
        active = slopes[np.maximum(known, 0), np.arange(known.shape[1])] != 0
        outputs_used = relevant & (active | (known < 0))
    return live[::-1]


def _group_by_pattern(pieces: list[Pieces], n_points: int) -> list[Counts]:
    """Group points by their activation pattern."""
    if not pieces:
        return [np.arange(n_points)]
    patterns = np.ascontiguousarray(np.hstack(pieces))
    keys = patterns.view([("", np.void, patterns.shape[1])]).ravel()
    order = np.argsort(keys, kind="stable")
    starts = np.flatnonzero(keys[order][1:] != keys[order][:-1]) + 1
    return list(np.split(order.astype(np.int64), starts))
