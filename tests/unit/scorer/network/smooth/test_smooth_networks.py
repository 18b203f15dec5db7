from pathlib import Path

import numpy as np
import pytest

import feta
from feta import FairAt, Model, Network, NetworkError
from feta.checker.prove import prove
from feta.io import onnx_writer
from feta.io.fair_onnx.write import write_fair_onnx
from feta.scorer.network.network import network_of
from feta.scorer.network.smooth import exact
from feta.scorer.network.smooth.activation import FACTS, Smooth
from feta.vote.stored_votes import StoredVotes

pytest.importorskip("flint", reason="python-flint is not installed")

from tests.smooth_cases import SPACE, SmoothCase, random_case


def case_of(number: int, *, edge: bool = True) -> SmoothCase:
    return random_case(np.random.default_rng([5, number]), edge=edge, people=1)


@pytest.mark.parametrize("number", range(12))
def test_verdicts_counts_and_decisions_are_those_of_the_oracle(number: int) -> None:
    case = case_of(number, edge=number % 3 > 0)
    rows = case.counterparts(case.people[0].tolist())
    truth = [case.favorable(row) for row in rows]
    assert None not in truth
    query = FairAt(case.model, case.people[0])
    verdict = feta.verify(query)
    assert isinstance(verdict, feta.Fair if len(set(truth)) == 1 else feta.Unfair)
    assert verdict.provenance == "proved"
    assert case.model.decide(np.array(rows)).tolist() == truth
    assert int(feta.tally(case.model, case.people).favorable[0]) == sum(map(bool, truth))
    if number < 3:
        prove(verdict, query)


@pytest.mark.parametrize("name", FACTS)
def test_scores_near_ties_are_decided_in_balls(name: str) -> None:
    network = Network.from_layers(
        [(np.eye(SPACE.width) / 8, np.zeros(SPACE.width)), (np.ones((1, SPACE.width)), [0.0])],
        activation=Smooth(name),
        source="float64",
    )
    person = SPACE.encode({"age": 20, "sex": "f", "income": 0.5, "debts": 1})
    score = network.exact_scores(person)
    assert max(score.radius.fractions()) < 2.0**-900
    for shift in (-1, 1):
        level = float(np.nextafter(score.floats()[0, 0], shift * np.inf))
        decision = Model(SPACE, network, threshold=level).decide(person)
        assert decision.tolist() == [shift < 0]


def test_the_linear_side_ties_exactly() -> None:
    network = Network.from_layers(
        [(np.eye(SPACE.width), np.ones(SPACE.width)), (np.ones((1, SPACE.width)), [0.0])],
        activation="elu",
        source="float64",
    )
    person = SPACE.encode({"age": 20, "sex": "f", "income": 0.5, "debts": 1})
    tied = Model(SPACE, network, rule=feta.Threshold(28.5, equality="favorable"))
    assert network.exact_scores(person).fractions() == [28.5]
    assert tied.decide(person).tolist() == [True]


def test_without_flint_close_scores_are_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    case = case_of(2)
    monkeypatch.setattr(exact, "is_available", lambda: False)
    model = Model(SPACE, case.model.scorer, threshold=case.model.rule.value)  # type: ignore[attr-defined]
    rows = np.array(case.counterparts(case.people[0].tolist()))
    scores = model.scorer(rows)[:, 0]
    close = int(np.argmin(np.abs(scores - case.model.rule.value)))  # type: ignore[attr-defined]
    on_it = Model(SPACE, case.model.scorer, threshold=float(scores[close]))
    verdict = feta.verify(FairAt(on_it, case.people[0]))
    assert isinstance(verdict, feta.Unknown | feta.Unfair)
    if isinstance(verdict, feta.Unknown):
        assert "feta-fair[smooth]" in str(verdict.reason)


def test_a_file_keeps_the_model(tmp_path: Path) -> None:
    for number in range(6):
        model = case_of(number).model
        feta.save_model(model, tmp_path / "model.feta")
        loaded = feta.load_model(tmp_path / "model.feta")
        assert loaded.fingerprint == model.fingerprint
        rows = case_of(number).people
        assert (loaded.scorer(rows) == model.scorer(rows)).all()


def test_what_needs_straight_pieces_is_refused_by_name(tmp_path: Path) -> None:
    network = Network.from_layers(
        [(np.ones((2, SPACE.width)), [0.0, 0.0]), (np.ones((1, 2)), [0.0])], activation="tanh"
    )
    with pytest.raises(NetworkError, match=r"^invalid scorer: got Network: .* with tanh; expected"):
        network_of(network)
    with pytest.raises(NetworkError, match="with tanh; expected a piecewise-linear Network"):
        onnx_writer.write_onnx(network, tmp_path / "network.onnx")
    model = Model(SPACE, network, threshold=0.0)
    predictor = feta.FairPredictor.voting(model, StoredVotes("majority"))
    with pytest.raises(NetworkError, match="with tanh; expected a piecewise-linear Network"):
        write_fair_onnx(predictor, tmp_path / "fair.onnx")
    with pytest.raises(NetworkError, match=r"needs a piecewise-linear network: got .*'tanh'"):
        list(network.piecewise_steps)
    with pytest.raises(feta.EngineError):
        feta.verify(FairAt(model, case_of(0).people[0]), engine="milp")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Smooth("cosine"), "unknown smooth activation: .*cosine"),
        (lambda: Smooth("elu", 0.0), r"invalid parameter of the activation 'elu': got 0\.0"),
        (lambda: Smooth("elu", float("nan")), "invalid parameter of the activation 'elu'"),
        (lambda: Smooth("tanh", 2.0), r"the activation 'tanh' has no parameter: got 2\.0"),
    ],
)
def test_invalid_functions_are_refused(make: object, message: str) -> None:
    with pytest.raises(NetworkError, match=message):
        make()  # type: ignore[operator]
