import pytest

pytest.importorskip("torch", reason="torch is not installed")

import json
from dataclasses import replace
from pathlib import Path

import numpy as np

import feta
from feta import Argmax, FairPredictor, Model, NetworkError, SchemaError, Tolerance
from feta.metrics.rates import ce_rate
from feta.train import checkpoint_file, fair_loop
from feta.train.ce_fair import CEFairTrainer
from feta.train.curve_file import write_curve
from feta.train.plain import PlainTrainer
from feta.train.violation import violations
from tests.unit.train.people import CLASSES, LABELS, PEOPLE, SCORES, SPACE

PLAIN = PlainTrainer(SPACE, hidden=(6,), learning_rates=(0.03,), batch_sizes=(32,), epochs=25)
UNFAIR = PLAIN.train(PEOPLE, LABELS).network
TRAINER = CEFairTrainer(SPACE, learning_rate=0.01, batch_size=32, epochs=8)


def rate(network: feta.Network) -> float:
    return ce_rate(feta.tally(Model(SPACE, network), PEOPLE))


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"keep": "counterexamples"},
        {"keep": 0.3},
        {"label": "decision"},
        {"sensitive_numbers": "integer"},
        {"sample_fraction": 0.5, "subset": "fixed"},
        {"ce_weight": 3.0},
        {"select_on": "train"},
        {"span_penalty": 0.1},
        {"preset": "paper"},
        {"standardize": False, "learning_rate": 0.001},
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:.*(far from 0|nearly constant)")
def test_fewer_people_have_a_counterexample_after_training(settings: dict[str, object]) -> None:
    trainer = replace(TRAINER, **settings)  # type: ignore[arg-type]  # settings of all types
    run = trainer.train(UNFAIR, PEOPLE, LABELS)
    assert rate(run.network) < 0.8 * rate(UNFAIR)
    assert len(run.epochs) == trainer.epochs
    assert [epoch.number for epoch in run.epochs] == list(range(1, trainer.epochs + 1))
    assert run.best.number == run.chosen
    points = [(epoch.chosen_by.accuracy, epoch.chosen_by.ce_rate) for epoch in run.epochs]
    distances = [(1 - accuracy) ** 2 + ce**2 for accuracy, ce in points]
    assert distances[run.chosen - 1] == min(distances)
    assert run.network.fingerprint == trainer.train(UNFAIR, PEOPLE, LABELS).network.fingerprint


def test_figures_of_the_chosen_epoch_are_those_of_the_returned_network() -> None:
    validation = (PEOPLE[:40], LABELS[:40])
    run = TRAINER.train(UNFAIR, PEOPLE[40:], LABELS[40:], validation=validation)
    model = Model(SPACE, run.network)
    assert run.best.chosen_by.ce_rate == ce_rate(feta.tally(model, validation[0]))
    assert run.best.chosen_by.accuracy == np.mean(model.decide(validation[0]) == validation[1])
    before = Model(SPACE, UNFAIR)
    assert run.start.ce_rate == pytest.approx(ce_rate(feta.tally(before, validation[0])), abs=0.03)


def test_fair_predictions_have_no_counterexample() -> None:
    run = TRAINER.train(UNFAIR, PEOPLE, LABELS)
    predictor = FairPredictor(Model(SPACE, run.network))
    for person, decision in zip(PEOPLE[:20], predictor.decide(PEOPLE[:20]), strict=True):
        for others in SPACE.lattice.counterparts(person):
            assert (predictor.decide(others) == decision).all()


def test_a_batch_is_trained_on_the_counterexamples_of_the_current_network(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every search has another network and rows of the data, each once per epoch."""
    searches: list[tuple[str, np.ndarray]] = []

    def spy(space, network, task, people, *, numbers, **rest):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN003, ANN202
        if numbers == "real":
            searches.append((network.fingerprint, people))
        return violations(space, network, task, people, numbers=numbers, **rest)

    monkeypatch.setattr(fair_loop, "violations", spy)
    trainer = replace(TRAINER, epochs=2)
    trainer.train(UNFAIR, PEOPLE, LABELS, validation=(PEOPLE, LABELS))
    assert len({fingerprint for fingerprint, _ in searches}) == len(searches) == 2 * 5
    first = np.concatenate([people for _, people in searches[:5]])
    assert sorted(map(tuple, first)) == sorted(map(tuple, PEOPLE))


def test_keeping_only_counterexamples_skips_a_batch_without_any() -> None:
    blind = replace(PLAIN, blind=True).train(PEOPLE, LABELS).network
    trainer = replace(TRAINER, keep="counterexamples", epochs=2)
    run = trainer.train(blind, PEOPLE, LABELS)
    assert np.allclose(run.network(PEOPLE), blind(PEOPLE))
    assert [epoch.loss for epoch in run.epochs] == [0.0, 0.0]


def test_a_real_valued_sensitive_attribute_is_trained_on() -> None:
    space = feta.FeatureSpace((feta.Real("age", 18, 30, sensitive=True), *SPACE.attributes[1:]))
    run = replace(TRAINER, space=space).train(UNFAIR, PEOPLE, LABELS)
    assert run.best.chosen_by.ce_rate < run.start.ce_rate
    assert rate(run.network) < 0.8 * rate(UNFAIR)


def test_several_classes_and_regression_are_trained() -> None:
    rule = Argmax(("a", "b", "c"))
    plain = replace(PLAIN, rule=rule).train(PEOPLE, CLASSES).network
    several = replace(TRAINER, rule=rule, keep="counterexamples", epochs=16)
    run = several.train(plain, PEOPLE, CLASSES)
    before, after = (
        ce_rate(feta.tally(Model(SPACE, network, rule), PEOPLE)) for network in (plain, run.network)
    )
    assert after < 0.8 * before
    tolerance = Tolerance(0.2)
    scores = replace(PLAIN, rule=tolerance).train(PEOPLE, SCORES).network
    for settings in ({}, {"span_penalty": 0.1}):
        trainer = replace(TRAINER, rule=tolerance, **settings)  # type: ignore[arg-type]  # a number
        run = trainer.train(scores, PEOPLE, SCORES)
        spans = [
            feta.spread(Model(SPACE, network, tolerance), PEOPLE).span.mean()
            for network in (scores, run.network)
        ]
        assert spans[1] < 0.9 * spans[0]


@pytest.mark.parametrize("stop", [1, 5, 8])
def test_an_interrupted_training_resumes_at_its_epoch(
    stop: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint_file, "EVERY", 0.0)
    path, epochs = tmp_path / "training", []

    def interrupt(share: float) -> None:
        epochs.append(share)
        if len(epochs) == stop:
            raise KeyboardInterrupt

    trainer = replace(TRAINER, sample_fraction=0.5, keep=0.5)  # uses all random choices
    with pytest.raises(KeyboardInterrupt):
        trainer.train(UNFAIR, PEOPLE, LABELS, checkpoint=path, progress=interrupt)
    run = trainer.train(UNFAIR, PEOPLE, LABELS, checkpoint=path, progress=interrupt)
    uninterrupted = trainer.train(UNFAIR, PEOPLE, LABELS)
    assert len(epochs) == trainer.epochs
    assert run.network.fingerprint == uninterrupted.network.fingerprint
    assert run.as_json() == uninterrupted.as_json()
    with pytest.raises(NetworkError, match="its data or settings differ"):
        replace(trainer, keep=0.6).train(UNFAIR, PEOPLE, LABELS, checkpoint=path)


def test_a_nearly_constant_network_and_unscaled_columns_are_warned_about() -> None:
    constant = feta.Network.from_layers([(np.zeros((1, 4)), [5.0])])
    with pytest.warns(
        UserWarning, match="100.0% of people get the same decision .*: it may be fair"
    ):
        replace(TRAINER, epochs=1, learning_rate=1e-6).train(constant, PEOPLE, LABELS)
    unscaled = feta.FeatureSpace(
        (feta.Integer("age", 1000, 1030, sensitive=True), *SPACE.attributes[1:])
    )
    people = PEOPLE + np.array([1000.0, 0.0, 0.0, 0.0])
    network = feta.Network.from_layers([([[0.0, 0.0, 0.0, 1.0]], [-50.0])])
    trainer = CEFairTrainer(unscaled, standardize=False, epochs=1, learning_rate=1e-6)
    with pytest.warns(UserWarning, match="far from 0 compared with their spread: 'age'"):
        trainer.train(network, people, LABELS)


def test_the_learning_rate_follows_the_share_of_people() -> None:
    assert CEFairTrainer(SPACE).rate == 1e-3
    assert CEFairTrainer(SPACE, sample_fraction=0.02).rate == 1e-2
    assert CEFairTrainer(SPACE, learning_rate=0.5).rate == 0.5


def test_the_preset_of_the_paper_has_its_settings() -> None:
    trainer = CEFairTrainer(SPACE, preset="paper", keep="counterexamples", sample_fraction=0.02)
    assert (trainer.select_on, trainer.label, trainer.epochs) == ("train", "own", 50)
    assert (trainer.keep, trainer.sample_fraction) == ("counterexamples", 0.02)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"keep": "some"},
            "invalid keep: got 'some'; expected 'all', 'counterexamples' or a fraction from 0 to 1",
        ),
        ({"keep": 1.5}, "invalid keep: got .*; expected 'all'"),
        ({"label": "fair"}, "invalid label: got 'fair'; expected one of 'own', 'decision'"),
        ({"engine": "milp"}, "invalid engine: got 'milp'; expected one of 'auto', 'exhaustive'"),
        ({"preset": "own"}, "invalid preset: got 'own'; expected one of None, 'paper'"),
        ({"span_penalty": -1.0}, "invalid span_penalty: got -1.0; expected a number above 0"),
        (
            {"learning_rate": float("nan")},
            "invalid learning_rate: got nan; expected a number above 0",
        ),
        (
            {"sample_fraction": 2},
            "invalid sample_fraction: got 2; expected a number above 0 and at most 1",
        ),
        ({"batch_size": 0}, "invalid batch_size: got 0; expected an integer above 0"),
    ],
)
def test_invalid_settings_are_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(TRAINER, **settings)  # type: ignore[arg-type]  # invalid on purpose


def test_rules_that_do_not_fit_are_refused() -> None:
    pair = feta.Network.from_layers([(np.zeros((2, 4)), [0.0, 0.0])])
    with pytest.raises(SchemaError, match="a span penalty needs one score: got 2 outputs"):
        replace(TRAINER, span_penalty=0.1).train(pair, PEOPLE, LABELS)
    with pytest.raises(
        SchemaError, match="wrong number of scores for Threshold: got 2; expected 1"
    ):
        replace(TRAINER, rule=feta.Threshold(0.0)).train(pair, PEOPLE, LABELS)


def test_the_curve_is_written_reproducibly_as_svg_and_json(tmp_path: Path) -> None:
    run = replace(TRAINER, epochs=3).train(UNFAIR, PEOPLE, LABELS)
    for name in ("a.svg", "b.svg", "a.json"):
        write_curve(run, tmp_path / name)
    content = json.loads((tmp_path / "a.json").read_text())
    assert content["chosen"] == run.chosen
    assert [epoch["loss"] for epoch in content["epochs"]] == [epoch.loss for epoch in run.epochs]
    svg = (tmp_path / "a.svg").read_text()
    assert svg == (tmp_path / "b.svg").read_text()
    assert "<svg" in svg
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json", "a.svg", "b.svg"]
