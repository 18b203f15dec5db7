"""Bounds contain every counterpart's exact values, whatever the activation and the scale."""

from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import feta
from feta.bounds import interval, linear
from feta.bounds.first_layer import Terms
from feta.cells.cells import Cells
from feta.model import Model
from tests import oracle
from tests.examples import rescaled
from tests.strategies import Case, cases
from tests.unit.bounds.exact_layers import contains, layers_of


def halves(model: Model) -> Cells:
    """Return the cell of all counterparts, and two halves of it along each attribute."""
    cells = Cells.whole(Terms.of(model.network.first, model.relation.axes).axes)
    for axis, at in enumerate(cells.middles(0)):
        if not np.isnan(at):
            cells = cells.followed_by(cells.cut(0, axis, at))
    return cells


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
        assert (inner.upper <= outer.upper + 1e-9 * np.abs(outer.upper)).all()


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
