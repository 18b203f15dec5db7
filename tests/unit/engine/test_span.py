"""A tolerance compares the lowest and the highest score of all counterparts."""

from fractions import Fraction

import numpy as np
import pytest

import feta
from feta.checker.prove import prove
from feta.engine.span import HIGHEST, LOWEST, Span
from tests.examples import PERSON, SPACE

ENGINES = ["exhaustive", "lattice", "milp"]
AGE = feta.Network.from_layers([([[1.0, 0, 0, 0]], [0.0])])


def aged(age: float) -> np.ndarray:
    return np.array([age, *PERSON[1:]])


def test_a_span_only_widens() -> None:
    span = Span(feta.Model(SPACE, AGE, feta.Tolerance(20.0)), PERSON)
    assert span.pair() is None
    span.widen(np.stack([aged(40), aged(35), aged(21)]))
    assert (span.scores.floats().tolist(), span.moves) == ([[21.0], [40.0]], 2)
    assert span.pair() is None
    span.widen(aged(41.0)[None])
    assert span.pair() is None  # exactly 20
    span.widen(aged(42.0)[None])
    pair = span.pair()
    assert pair is not None
    assert (pair.person[0], pair.counterpart[0], pair.gap) == (21.0, 42.0, 21.0)


def test_an_end_may_be_replaced_by_an_equal_one() -> None:
    span = Span(feta.Model(SPACE, AGE, feta.Tolerance(20.0)), PERSON)
    other = np.array([30.0, *PERSON[[2, 1, 3]]])
    span.widen(other[None])
    assert span.ends[1] is PERSON
    span.set_optimum(HIGHEST, other)
    assert span.ends[1] is other
    span.set_optimum(LOWEST, other)
    assert span.pair() is None


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("step", [-1, 0, 1])
def test_the_exact_span_decides_below_float64s_resolution(engine: str, step: int) -> None:
    """Scores near 1 that differ by 2^-80, which float64 cannot represent."""
    space = feta.FeatureSpace((feta.Integer("n", -1, 1, sensitive=True), feta.Real("x", 0, 1)))
    network = feta.Network.from_layers([([[2.0**-80, 1.0]], [0.0])])
    epsilon = float(2.0**-79 * (1 + step * 2.0**-52))
    model = feta.Model(space, network, feta.Tolerance(epsilon))
    for n in (-1.0, 0.0, 1.0):
        for query in (
            feta.FairAt(model, np.array([n, 1.0])),
            feta.WorstAt(model, np.array([n, 1.0])),
        ):
            verdict = feta.verify(query, engine=engine)
            if step < 0:
                assert isinstance(verdict, feta.Unfair)
                pair = verdict.counterexample
                assert (pair.person[0], pair.counterpart[0], pair.gap) == (-1.0, 1.0, 2.0**-79)
                continue
            assert isinstance(verdict, feta.Fair)
            assert verdict.runtime == "sensitive"
            prove(verdict.certificate, query)


@pytest.mark.parametrize("engine", ENGINES)
def test_runtime_safe_covers_the_errors_of_the_source_at_both_ends(engine: str) -> None:
    space = feta.FeatureSpace((feta.Integer("age", 1, 2, sensitive=True),))
    network = feta.Network.from_layers([([[0.1]], [3.0])])
    pair = np.array([[1.0], [2.0]])
    some = feta.Model(space, network, feta.Tolerance(0.0))
    bounded = some.runtime_scores(some.points(pair))
    distance = float(bounded.values[1, 0] - bounded.values[0, 0])
    for epsilon, runtime in (
        (distance + 1.9 * float(bounded.errors.max()), "sensitive"),
        (distance + 40 * float(bounded.errors.max()), "safe"),
    ):
        model = feta.Model(space, network, feta.Tolerance(epsilon))
        for kind in (feta.FairAt, feta.WorstAt):
            verdict = feta.verify(kind(model, pair[0]), engine=engine)
            assert isinstance(verdict, feta.Fair)
            assert verdict.runtime == runtime


def plateau(bias: float, epsilon: float) -> feta.Model:
    """Return a model with nearly a million equal scores: bias + max(0, n − 998)."""
    space = feta.FeatureSpace(
        tuple(feta.Integer(name, 0, 999, sensitive=True) for name in ("n", "m"))
    )
    network = feta.Network.from_layers([([[1.0, 0.0]], [-998.0]), ([[1.0]], [bias])])
    return feta.Model(space, network, feta.Tolerance(epsilon))


@pytest.mark.parametrize(("epsilon", "fair"), [(1.5, True), (0.5, False)])
def test_a_million_equal_scores_are_bounded_together(epsilon: float, *, fair: bool) -> None:
    model = plateau(0.3, epsilon)
    verdict = feta.verify(feta.FairAt(model, np.zeros(2)), engine="lattice")
    assert isinstance(verdict, feta.Fair if fair else feta.Unfair)
    assert verdict.runtime == "safe"
    assert verdict.effort.evaluations < 10**5


@pytest.mark.parametrize("engine", ["exhaustive", "lattice"])
def test_a_spent_budget_gives_no_verdict(engine: str) -> None:
    model = feta.Model(SPACE, AGE, feta.Tolerance(71.5))
    verdict = feta.worst(model, PERSON, engine=engine, budget=feta.Budget(evaluations=1))
    assert isinstance(verdict, feta.Unknown)
    assert verdict.best is None


def test_the_best_pair_so_far_is_kept_when_the_budget_is_spent() -> None:
    space = feta.FeatureSpace((feta.Integer("n", 0, 2**20, sensitive=True),))
    model = feta.Model(space, feta.Network.from_layers([([[1.0]], [0.0])]), feta.Tolerance(1.0))
    verdict = feta.worst(
        model, np.zeros(1), engine="exhaustive", budget=feta.Budget(evaluations=2**17)
    )
    assert isinstance(verdict, feta.Unknown)
    assert verdict.best is not None
    assert verdict.best.gap > 1.0


PEAKED = feta.Network.from_layers(
    [([[1.0, 0.0], [-1.0, 0.0]], [-45.0, 45.0]), ([[-1.0, -1.0]], [1.0])]
)  # 1 − |age − 45|: from −24 to 1


@pytest.mark.parametrize("engine", ["lattice", "milp"])
@pytest.mark.parametrize("age", [20.0, 45.0, 69.5])
@pytest.mark.parametrize(("epsilon", "fair"), [(24.9, False), (25.1, True)])
def test_a_real_valued_attribute_has_a_span(
    engine: str, age: float, epsilon: float, *, fair: bool
) -> None:
    space = feta.FeatureSpace(
        (feta.Real("age", 20, 70, sensitive=True), feta.Real("income", 0, 10))
    )
    model = feta.Model(space, PEAKED, feta.Tolerance(epsilon))
    for kind in (feta.FairAt, feta.WorstAt):
        query = kind(model, np.array([age, 3.0]))
        verdict = feta.verify(query, engine=engine)
        if fair:
            assert isinstance(verdict, feta.Fair)
            prove(verdict.certificate, query)
            continue
        assert isinstance(verdict, feta.Unfair)
        if kind is feta.WorstAt:
            assert verdict.optimal
            assert verdict.counterexample.gap == pytest.approx(25.0, rel=1e-8)


@pytest.mark.parametrize(("epsilon", "fair"), [(2.0**40, True), (2.0**40 - 1, False)])
def test_a_domain_too_large_to_count_is_proved_by_bounds(epsilon: float, *, fair: bool) -> None:
    space = feta.FeatureSpace((feta.Integer("n", 0, 2**40, sensitive=True),))
    network = feta.Network.from_layers([([[1.0]], [0.0])])
    model = feta.Model(space, network, feta.Tolerance(epsilon + 0.5 * fair))
    query = feta.WorstAt(model, np.array([2.0**20]))
    verdict = feta.verify(query, engine="milp")
    if fair:
        assert isinstance(verdict, feta.Fair)
        assert verdict.certificate.proof.center == Fraction(2**40, 2)  # type: ignore[union-attr]
        prove(verdict.certificate, query)
    else:
        assert isinstance(verdict, feta.Unfair)
        assert (verdict.optimal, verdict.counterexample.gap) == (True, 2.0**40)
