"""Bounds contain every counterpart's exact values, whatever the activation and the scale."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import feta
from feta.arrays import Vector
from feta.bounds import interval, linear
from feta.bounds.first_layer import Terms, tabulable
from feta.bounds.relaxation import relax
from feta.cells.cells import Cells
from feta.interval_box import IntervalBox
from feta.model import Model
from feta.scorer.network.activation import (
    Activation,
    absolute,
    clip,
    leaky_relu,
    prelu,
    relu,
    relu6,
)
from tests import oracle
from tests.examples import rescaled
from tests.strategies import Case, cases

ACTIVATIONS = (relu(), leaky_relu(0.01), absolute(), clip(-0.5, 2.0), relu6(), prelu([-1.5]))


def layers_of(model: Model, person: Vector) -> list[list[Fraction]]:
    """Return the exact inputs of each activation, then the scores."""
    network, values = model.network, []
    for depth in range(len(network.layers) + 1):
        cut = feta.Network(network.first, network.activations[:depth], network.layers[:depth])
        rule = feta.Argmax(tuple(str(n) for n in range(cut.outputs))) if cut.outputs > 1 else None
        part = Model(model.space, cut, rule) if rule else Model(model.space, cut)
        values.append(oracle.scores(part, person))
    return values


def halves(model: Model) -> Cells:
    """Return the cell of all counterparts, and two halves of it along each attribute."""
    cells = Cells.whole(Terms.of(model.network.first, model.relation.axes).axes)
    for axis, at in enumerate(cells.middles(0)):
        if not np.isnan(at):
            cells = cells.followed_by(cells.cut(0, axis, at))
    return cells


def contains(box: IntervalBox, row: int, values: list[Fraction]) -> bool:
    pairs = zip(box.lower[row], values, box.upper[row], strict=True)
    return all(Fraction(float(low)) <= value <= Fraction(float(high)) for low, value, high in pairs)


@given(case=cases(plain=False), power=st.sampled_from([0, 30]), seed=st.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_bounds_hold_for_every_counterpart(case: Case, power: int, seed: int) -> None:
    network = rescaled(case.model.network, np.random.default_rng(seed), power)
    model, person = Model(case.model.space, network, case.model.rule), case.people[0]
    cells = halves(model)
    first = Terms.of(model.network.first, model.relation.axes).at(person, cells)
    known = linear.forward(network, first)
    scores = linear.next_box(network, first, known) if known else first.box()
    tight = [*(layer.box for layer in known), scores]
    loose = interval.forward(network, first.box())
    for row in range(len(cells)):
        corners = cells.corners(row, person, 10**6)
        assert corners is not None
        for other in corners:
            for depth, values in enumerate(layers_of(model, other)):
                assert contains(tight[depth], row, values)
                assert contains(loose[depth], row, values)
    for inner, outer in zip(tight, loose, strict=True):
        assert (inner.lower >= outer.lower - 1e-9 * np.abs(outer.lower)).all()


@given(case=cases(plain=False))
@settings(max_examples=60, deadline=None)
def test_no_counterpart_exceeds_the_bound_of_the_objective(case: Case) -> None:
    model, person = case.model, case.people[0]
    reference = model.points(person[None, :]).exact_scores(np.zeros(1, dtype=np.int64))
    objective, cells = model.rule.objective(reference), halves(model)
    bounds = model.restricted.over(person, cells, objective, source_error=model.runtime_error)
    runtime_safe = bounds.runtime_safe()
    for row in range(len(cells)):
        corners = cells.corners(row, person, 10**6)
        assert corners is not None
        differs = [oracle.differs(model, person, other) for other in corners]
        gaps = [oracle.gap(model, person, other) for other in corners]
        if bounds.agrees[row]:
            assert not any(differs)
        assert bounds.agrees[row] or not runtime_safe[row]
        if not isinstance(model.rule, feta.Threshold) and any(differs):
            assert max(gaps) <= Fraction(float(bounds.highs[row]))


@pytest.mark.parametrize("activation", ACTIVATIONS, ids=lambda activation: activation.name)
def test_an_activation_lies_between_the_lines_of_its_relaxation(activation: Activation) -> None:
    rng = np.random.default_rng(0)
    ends = np.sort(rng.normal(size=(400, 1, 2)) * 10.0 ** rng.integers(-9, 9, (400, 1, 1)), axis=2)
    ends[:20, :, 1] = ends[:20, :, 0]  # points
    lines = relax(activation, IntervalBox(ends[:, :, 0], ends[:, :, 1]))
    for share in (0.0, 0.1, 0.5, 0.9, 1.0, *np.array(activation.breaks)[:, 0]):
        inside = np.clip(
            ends[:, :, 0] + share * (ends[:, :, 1] - ends[:, :, 0]), *ends.T[:, 0, :, None]
        )
        for row, z in enumerate(inside[:, 0]):
            value = oracle.activate(activation, 0, Fraction(float(z)))
            for (slope, at), side in ((lines.below, 1), (lines.above, -1)):
                line = Fraction(float(slope[row, 0])) * Fraction(float(z)) + Fraction(
                    float(at[row, 0])
                )
                assert side * (value - line) >= 0


def test_first_layer_ranges_are_exact_up_to_rounding() -> None:
    space = feta.FeatureSpace(
        (feta.Real("a", -1, 1, sensitive=True), feta.Categorical("b", ("x", "y"), sensitive=True))
    )
    network = feta.Network.from_layers([([[2.0, 1.0, 5.0]], [0.5])])
    model = Model(space, network, threshold=0.0)
    terms = Terms.of(model.network.first, model.relation.axes)
    box = terms.at(np.array([0.0, 1.0, 0.0]), Cells.whole(terms.axes)).box()
    assert box.lower[0, 0] == pytest.approx(-0.5, abs=1e-12)
    assert box.upper[0, 0] == pytest.approx(7.5, abs=1e-12)


def test_a_relu_has_the_lines_of_the_paper() -> None:
    lines = relax(relu(), IntervalBox(np.array([[-1.0]]), np.array([[3.0]])))
    assert lines.above[0][0, 0] == 0.75
    assert lines.above[1][0, 0] == pytest.approx(0.75)
    assert lines.below[0][0, 0] == 1.0


def test_linear_bounds_cancel_equal_terms_and_intervals_do_not() -> None:
    """max(0, z) − max(0, z) is 0 for every z."""
    space = feta.FeatureSpace((feta.Real("a", 1, 9, sensitive=True),))
    layers = [([[1.0], [1.0]], [0.0, 0.0]), ([[1.0, -1.0]], [0.0])]
    model = Model(space, feta.Network.from_layers(layers), threshold=0.0)
    terms = Terms.of(model.network.first, model.relation.axes)
    first = terms.at(np.array([2.0]), Cells.whole(terms.axes))
    tight = linear.next_box(model.network, first, linear.forward(model.network, first))
    assert max(abs(tight.lower[0, 0]), abs(tight.upper[0, 0])) < 1e-12
    assert interval.forward(model.network, first.box())[-1].upper[0, 0] >= 8


def test_tables_over_the_maximum_length_are_not_bounded() -> None:
    values = tuple(f"v{n}" for n in range(4097))
    for n_values, accepted in ((4096, True), (4097, False)):
        space = feta.FeatureSpace((feta.Categorical("c", values[:n_values], sensitive=True),))
        network = feta.Network.from_layers([(np.ones((1, n_values)), [0.0])])
        assert tabulable(network.first, space.axes) is accepted
