"""`feta.prove` and `feta.verify(FairEverywhere(model))`: shares, refusals, regions, resumption."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import feta
from feta.engine.protocol import UNLIMITED
from feta.everybody.population import uniform
from feta.everybody.prove import proving
from feta.everybody.proving import Proving
from feta.everybody.where import Where
from feta.verdict.certificate import BoundsProof, LatticeProof

SPACE = feta.FeatureSpace(
    (
        feta.Integer("age", 18, 27, sensitive=True),
        feta.Integer("income", 0, 99),
        feta.Real("hours", 0.0, 80.0),
    )
)
MODEL = feta.Model(SPACE, feta.Network.from_layers([([[1.0, 1.0, 0.0]], [-50.5])]), threshold=0.0)
FEW = feta.Budget(evaluations=2000)

# Unfair are incomes from 24 to 32: with age 18 up to 42 + …, with age 27 at least 51.
UNFAIR = Fraction(9, 100)


def test_shares_of_a_linear_model_are_exact() -> None:
    answer = feta.prove(MODEL, budget=feta.Budget(evaluations=4000))
    assert (answer.fair, answer.unfair) == (1 - UNFAIR, UNFAIR)
    assert answer.undecided == 0
    assert answer.method == "branch"
    assert answer.counterexample is not None
    assert MODEL.decide(
        np.stack([answer.counterexample.person, answer.counterexample.counterpart])
    ).tolist() in (
        [False, True],
        [True, False],
    )
    assert "all people whom the schema allows" in answer.population


@pytest.mark.parametrize(
    ("where", "unfair"),
    [
        ("income >= 30", Fraction(3, 70)),
        ("income >= 30 and hours < 40", Fraction(3, 70)),
        ("income < 24 or income > 32", Fraction(0)),
        ("not income < 24 and income <= 32", Fraction(1)),
    ],
)
def test_a_condition_restricts_the_population(where: str, unfair: Fraction) -> None:
    answer = feta.prove(MODEL, where, budget=FEW)
    assert answer.unfair == unfair
    assert answer.undecided == 0
    assert where in answer.sentences()[0]
    assert answer.nobody is (unfair == 0)


def test_a_linked_condition_is_sampled_only() -> None:
    answer = feta.prove(MODEL, "income + hours < 60", budget=FEW)
    assert answer.fair == answer.unfair == 0
    assert "'hours', 'income'" in answer.unproved
    assert answer.draws.people == 2000
    # By integration: incomes 24 to 32 have Σ (60 − i) = 288 of Σ_{i<60} (60 − i) = 1830 hours.
    assert answer.estimate.low <= 288 / 1830 <= answer.estimate.high
    assert not any("proved to" in sentence for sentence in answer.sentences())


def test_the_rows_of_a_table_are_enumerated() -> None:
    frame = pd.DataFrame(
        {"age": [18, 20, 20, 25], "income": [30, 30, 30, 90], "hours": [1.0, 1.0, 2.0, 3.0]}
    )
    answer = feta.prove(MODEL, population=frame, budget=FEW)
    assert (answer.fair, answer.unfair) == (Fraction(1, 4), Fraction(3, 4))
    assert answer.method == "enumeration"
    assert answer.population == "the 4 people of the table"
    shares = feta.prove(MODEL, population=frame, marginals=True, budget=FEW)
    assert (shares.fair, shares.unfair) == (Fraction(1, 4), Fraction(3, 4))
    assert "independently" in shares.population


def test_a_blind_network_is_proved_at_once() -> None:
    blind = feta.Model(
        SPACE, feta.Network.from_layers([([[0.0, 1.0, 0.3]], [-50.0])]), threshold=0.0
    )
    answer = feta.prove(blind, budget=feta.Budget(evaluations=0))
    assert (answer.method, answer.draws.people) == ("structure", 0)
    assert answer.fair == 1
    assert "nobody is treated unfairly. This is proved" in answer.sentences()[0]
    assert feta.prove(MODEL, budget=feta.Budget(evaluations=0)).fair == 0


def test_a_path_that_ends_in_a_zero_weight_is_harmless() -> None:
    layers = [([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]], [0.0, 0.0]), ([[0.0, 1.0]], [-70.0])]
    model = feta.Model(SPACE, feta.Network.from_layers(layers), threshold=0.0)
    answer = feta.prove(model, budget=FEW)
    assert (answer.nobody, answer.boxes) == (True, 1)
    verdict = feta.verify(feta.FairEverywhere(model))
    assert isinstance(verdict, feta.Fair)
    assert verdict.certificate.proof == BoundsProof((None,))


def test_more_people_than_any_integer_type_holds() -> None:
    """10^24 people; a neuron that reads sex is never active, so nobody is treated unfairly."""
    columns = [feta.Integer(f"c{number}", 0, 99) for number in range(12)]
    sex = feta.Categorical("sex", ("f", "m"), sensitive=True)
    space = feta.FeatureSpace((sex, *columns))
    layers = [([[0.0, 1.0, *[0.0] * 12], [0.0, 0.0, *[1.0] * 12]], [-2.0, 0.0])]
    layers += [([[5.0, 1.0]], [-600.0])]
    model = feta.Model(space, feta.Network.from_layers(layers), threshold=0.0)
    answer = feta.prove(model, budget=FEW)
    assert (answer.nobody, answer.boxes, answer.method) == (True, 1, "branch")


def test_verdicts_about_everybody() -> None:
    assert isinstance(feta.verify(feta.FairEverywhere(MODEL)), feta.Unfair)
    few = feta.FeatureSpace(SPACE.attributes[:2])
    model = feta.Model(few, feta.Network.from_layers([([[1.0, 1.0]], [-50.5])]), threshold=0.0)
    fair = feta.verify(feta.FairEverywhere(model, "income < 24"))
    assert isinstance(fair, feta.Fair)
    assert fair.certificate.proof == LatticeProof(24)
    unknown = feta.verify(feta.FairEverywhere(MODEL, "income < 24"), budget=feta.Budget(seconds=0))
    assert isinstance(unknown, feta.Unknown)
    with pytest.raises(feta.EngineError, match=r"^unknown engine for FairEverywhere: got 'milp'"):
        feta.verify(feta.FairEverywhere(MODEL), engine="milp")


def test_counted_models_are_sampled_only() -> None:
    scorer = feta.read_callable(
        lambda frame: (frame["age"] + frame["income"] >= 51).to_numpy(),
        SPACE,
    )
    model = feta.Model(SPACE, scorer)
    answer = feta.prove(model, budget=feta.Budget(evaluations=128))
    assert answer.fair == answer.unfair == 0
    assert answer.method == ""
    assert "counted" in answer.unproved
    assert answer.estimate.low <= float(UNFAIR) <= answer.estimate.high
    assert all("nobody is treated unfairly" not in sentence for sentence in answer.sentences())


def test_regions_are_conditions_and_hold_on_other_draws() -> None:
    answer = feta.prove(MODEL, budget=feta.Budget(evaluations=8000))
    assert answer.regions
    for region in answer.regions:
        inside = feta.prove(MODEL, region.where, budget=FEW)
        assert region.share_unfair.low <= inside.unfair <= region.share_unfair.high


def test_a_rare_corner_is_found_in_undecided_boxes() -> None:
    """One neuron reads age only where two other columns are at their ends: a share of 4e-6."""
    space = feta.FeatureSpace(
        (
            feta.Integer("age", 0, 1, sensitive=True),
            feta.Integer("a", 0, 999),
            feta.Integer("b", 0, 999),
        )
    )
    layers = [([[1.0, 1.0, 1.0]], [-1996.5]), ([[1.0]], [-0.75])]
    model = feta.Model(space, feta.Network.from_layers(layers), threshold=0.0)
    # Active from a + b + age = 1997; the score is positive from 1997.25, so from 1998 on:
    # unfair is who has a + b = 1997.
    answer = feta.prove(model, budget=feta.Budget(evaluations=3000))
    assert answer.unfair == Fraction(2, 10**6)
    assert answer.fair == 1 - answer.unfair
    assert answer.counterexample is not None


def test_a_run_continues_where_its_draws_ended() -> None:
    def start(state: object = None) -> Proving:
        return proving(MODEL, uniform(SPACE, Where()), resume=state)  # type: ignore[arg-type]

    whole, first = start(), start()
    whole.run(feta.Budget(evaluations=5000))
    first.run(feta.Budget(evaluations=4100))
    second = start(first.state)
    second.run(feta.Budget(evaluations=900))
    assert second.state == whole.state
    assert whole.state.people == 5000
    other = proving(MODEL, uniform(SPACE, Where.of("income < 50", SPACE)))
    other.run(feta.Budget(evaluations=64))
    with pytest.raises(feta.SchemaError, match=r"^the state belongs to another question"):
        start(other.state)


def test_invalid_questions_are_refused() -> None:
    with pytest.raises(feta.SchemaError, match=r"^no limit: got a budget without seconds"):
        feta.prove(MODEL, budget=UNLIMITED)
    with pytest.raises(
        feta.SchemaError, match=r"^invalid condition: got the sensitive column 'age'"
    ):
        feta.prove(MODEL, "age < 20", budget=FEW)
    with pytest.raises(feta.SchemaError, match=r"^nobody found: got the condition 'income > 99'"):
        feta.prove(MODEL, "income > 99", budget=FEW)
    with pytest.raises(feta.SchemaError, match=r"^marginals of nothing"):
        feta.prove(MODEL, marginals=True, budget=FEW)
    with pytest.raises(feta.SchemaError, match=r"^invalid alpha: got 0"):
        feta.prove(MODEL, budget=FEW, alpha=0)
    empty = pd.DataFrame({"age": [], "income": [], "hours": []})
    with pytest.raises(feta.SchemaError, match=r"^no people: got an empty table"):
        feta.prove(MODEL, population=empty, budget=FEW)


def test_another_relation_is_refused() -> None:
    model = feta.Model(
        SPACE, MODEL.scorer, feta.Threshold(0.0), relation=feta.Similar({"income": 2})
    )
    with pytest.raises(feta.EngineError, match=r"^unknown people for this relation"):
        feta.prove(model, budget=FEW)
    with pytest.raises(feta.EngineError, match=r"^unknown people for this relation"):
        feta.verify(feta.FairEverywhere(model))
