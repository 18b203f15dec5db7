"""Edge cases: numbers and ties at which an inexact engine gives the opposite answer."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike

import feta
from feta import Categorical, FeatureSpace, Integer, Model, Network, Real, Threshold
from feta.arrays import Counts
from feta.dyadic import Dyadic
from feta.scorer.network.activation import piecewise
from feta.scorer.network.exact import ExactRestriction
from tests import oracle
from tests.examples import PERSON, SPACE, linear


def adult_sized(network: Network, threshold: float) -> Model:
    space = FeatureSpace(
        (
            Integer("age", 17, 90, sensitive=True),
            Categorical("marital", tuple("abcdefg"), sensitive=True),
            Categorical("race", tuple("abcde"), sensitive=True),
            Categorical("country", tuple(f"c{n}" for n in range(41)), sensitive=True),
            Categorical("sex", ("f", "m"), sensitive=True),
            Real("hours", 0, 99),
        )
    )
    return Model(space, network, threshold=threshold)


def test_every_counterpart_exactly_on_the_threshold_is_decided_by_pattern(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(0)
    width = 1 + 7 + 5 + 41 + 2 + 1
    first = rng.normal(size=(16, width))
    layers: list[tuple[ArrayLike, ArrayLike]] = [
        (first, rng.normal(size=16)),
        (rng.normal(size=(16, 16)), rng.normal(size=16)),
        (-np.abs(rng.normal(size=(16, 16))), -np.ones(16)),  # dead: never above 0
        (rng.normal(size=(1, 16)), [0.1]),
    ]
    model = adult_sized(Network.from_layers(layers), 0.1)
    person = model.space.encode(
        {"age": 40, "marital": "a", "race": "b", "country": "c3", "sex": "f", "hours": 40}
    )[0]
    assert model.space.lattice.size == 212_380
    sizes: list[int] = []
    evaluate_pattern = ExactRestriction._evaluate_pattern

    def counted(restriction: ExactRestriction, ids: Counts, *rest: Any) -> Dyadic:  # noqa: ANN401 - passed on
        sizes.append(len(ids))
        return evaluate_pattern(restriction, ids, *rest)

    monkeypatch.setattr(ExactRestriction, "_evaluate_pattern", counted)
    verdict = feta.verify(feta.FairAt(model, person))
    counts = feta.tally(model, person[None, :])
    assert isinstance(verdict, feta.Fair)
    assert verdict.runtime == "sensitive"
    assert counts.favorable.tolist() == [212_380]
    # Exact arithmetic is done per activation pattern; one by one, it would take hours.
    assert sum(sizes) >= 212_380
    assert len(sizes) <= 212_380 // 100


def test_cancelling_neurons_on_the_threshold_are_grouped_by_pattern() -> None:
    """Live neurons whose contributions cancel exactly: many patterns, every score a tie."""
    rng = np.random.default_rng(1)
    width = 1 + 7 + 5 + 41 + 2 + 1
    half = rng.normal(size=(4, width))
    out = rng.normal(size=4)
    layers: list[tuple[ArrayLike, ArrayLike]] = [
        (np.vstack([half, half]), np.zeros(8)),
        (np.concatenate([out, -out])[None, :], [0.0]),
    ]
    model = adult_sized(Network.from_layers(layers), 0.0)
    person = model.space.encode(
        {"age": 40, "marital": "a", "race": "b", "country": "c3", "sex": "f", "hours": 40}
    )[0]
    assert feta.tally(model, person[None, :]).favorable.tolist() == [212_380]


@pytest.mark.parametrize("equality", ["favorable", "unfavorable"])
@pytest.mark.parametrize("favors", ["above", "below"])
def test_a_score_on_the_threshold_is_decided_by_equality(equality: str, favors: str) -> None:
    rule = Threshold(3.0, favors, equality)  # type: ignore[arg-type]
    model = Model(SPACE, Network.from_layers([([[0.1, 0.0, 0.0, 0.0]], [0.0])]), rule)
    on = Model(SPACE, Network.from_layers([([[0.0, 0.0, 0.0, 0.0]], [3.0])]), rule)
    assert on.decide(PERSON[None, :]).tolist() == [equality == "favorable"]
    ages = np.stack([SPACE.encode({"age": a, "sex": "male", "income": 1})[0] for a in (29, 31)])
    assert model.decide(ages).tolist() == [favors == "below", favors == "above"]


def test_one_tenth_of_thirty_is_above_three() -> None:
    """0.1 in float64 is above 1/10, so exactly 0.1·30 > 3, though float64 rounds it to 3."""
    rule = Threshold(3.0, equality="unfavorable")
    model = Model(SPACE, Network.from_layers([([[0.1, 0.0, 0.0, 0.0]], [0.0])]), rule)
    assert 0.1 * 30 == 3.0
    assert model.decide(PERSON[None, :]).tolist() == [True]


def test_subnormal_weights_get_the_exact_answer() -> None:
    tiny = 5e-324
    model = linear(age=tiny, bias=-30 * tiny)
    verdict = feta.worst(model, PERSON)
    assert isinstance(verdict, feta.Unfair)
    assert SPACE.decode(verdict.counterexample.counterpart)["age"] == 18
    assert verdict.runtime == "sensitive"
    assert not oracle.is_fair(model, PERSON)


@pytest.mark.parametrize("engine", ["exhaustive", "lattice"])
@pytest.mark.parametrize(
    ("slope", "bend", "weight", "threshold"),
    [
        (3e-42, 0.0, 1e25, 3000.09),  # float32 rounds this slope by a thousandth
        (1.3e-45, 0.0, 1e25, 1.30002),
        (6e-46, 0.0, 1e25, 0.60002),  # float32 rounds it to 0
        (0.1, 0.0, 1e-17, 100.0025),
        (1e10, 2.0**-150, 1e-28, 100.003),
    ],
)
def test_activations_that_float32_cannot_represent_get_the_exact_answer(
    engine: str, slope: float, bend: float, weight: float, threshold: float
) -> None:
    pytest.importorskip("feta._native")
    space = FeatureSpace((Integer("age", 0, 2, sensitive=True), Real("x", 0, 2e20)))
    network = Network.from_layers(
        [([[2e15, 1.0]], [0.0]), ([[weight]], [0.0])],
        activation=piecewise("steep", [bend], [0, slope], [0, -slope * bend]),
    )
    person = space.encode({"age": 1, "x": 1e20})[0]
    tie = float(oracle.score(Model(space, network, Threshold(0)), person))
    for limit in (threshold, tie, float(np.nextafter(tie, 0)), float(np.nextafter(tie, np.inf))):
        model = Model(space, network, Threshold(limit))
        verdict = feta.verify(feta.FairAt(model, person), engine=engine)
        assert isinstance(verdict, feta.Fair) == oracle.is_fair(model, person)
        decided = feta.FairPredictor(model, engine=engine).decide(person[None])
        assert decided.tolist() == [oracle.fair_decision(model, person)]


def test_weights_beyond_float32_get_the_exact_answer_and_a_warning() -> None:
    model = linear(age=1e39, bias=-30e39)
    verdict = feta.verify(feta.FairAt(model, PERSON))
    assert isinstance(verdict, feta.Unfair)
    assert verdict.runtime == "sensitive"


def test_activations_that_could_overflow_are_rejected_with_their_position() -> None:
    network = Network.from_layers([([[1e200, 0, 0, 0]], [0.0]), ([[1e200]], [0.0])])
    with pytest.raises(
        feta.NetworkError, match=r"layer 2, neuron 0 could overflow: got values up to inf.*narrow"
    ):
        Model(SPACE, network, threshold=0.0)


def test_the_papers_algorithm_1_is_unfair_on_ties_and_eq_5_is_not() -> None:
    """A binary attribute that alone decides splits the counterparts in half.

    Algorithm 1 flips whoever has at least half of the counterparts against them: on a tie that is
    everybody, so the two groups swap outcomes and still differ. Eq. 5 gives both the same
    decision.
    """
    model = linear(female=-1.0, male=1.0)
    women, men = (SPACE.encode({"age": 40, "sex": s, "income": 1})[0] for s in ("female", "male"))
    counts = feta.tally(model, np.stack([women, men]))
    assert counts.favorable.tolist() == counts.unfavorable.tolist() == [73, 73]
    decisions = model.decide(np.stack([women, men]))
    against = np.where(decisions, counts.unfavorable, counts.favorable)
    algorithm_1 = np.where(against >= 73, ~decisions, decisions)
    assert algorithm_1.tolist() == [True, False]
    assert feta.FairPredictor(model).decide(np.stack([women, men])).tolist() == [True, True]


def test_nan_in_a_person_is_rejected_and_never_decided() -> None:
    broken = np.array(PERSON)
    broken[3] = np.nan
    with pytest.raises(
        feta.DomainError, match="'income' is invalid: got nan; expected a number from 0 to 100"
    ):
        feta.FairPredictor(linear(age=1.0)).decide(broken[None, :])


def test_a_spent_budget_is_unknown_never_fair() -> None:
    model = linear(age=1.0, bias=1.0)
    for budget in (feta.Budget(seconds=0), feta.Budget(evaluations=1)):
        verdict = feta.verify(feta.FairAt(model, PERSON), budget=budget, engine="exhaustive")
        assert isinstance(verdict, feta.Unknown)
        worst = feta.worst(model, PERSON, budget=budget, engine="exhaustive")
        assert isinstance(worst, feta.Unknown)
        counts = feta.tally(model, PERSON[None, :], budget=budget, engine="exhaustive")
        assert counts.undecided.tolist() == [146]
        with pytest.raises(feta.Undecided, match=r"1 person could not be decided \(rows 0\)"):
            feta.FairPredictor(model, "exhaustive", budget).decide(PERSON[None, :])


@pytest.mark.parametrize("engine", ["exhaustive", "lattice"])
def test_of_two_margins_of_zero_the_one_that_changes_the_class_is_worst(engine: str) -> None:
    """At "a" a later class ties with the person's and loses, at "b" an earlier one ties and wins.

    Both margins are 0 and "a" comes first; choosing it would prove an unfair model fair.
    """
    space = FeatureSpace((Categorical("race", ("a", "b", "c"), sensitive=True),))
    scores = np.array([[-1.0, 0.0, -1.0], [0.0, 0.0, 0.0], [0.0, -1.0, -1.0]])
    network = Network.from_layers([(scores, np.zeros(3))])
    model = Model(space, network, feta.Argmax(("x", "y", "z")))
    verdict = feta.worst(model, space.encode({"race": "c"})[0], engine=engine)
    assert isinstance(verdict, feta.Unfair)
    assert space.decode(verdict.counterexample.counterpart) == {"race": "b"}
    assert (verdict.counterexample.gap, verdict.counterexample.decisions) == (0.0, (1, 0))
