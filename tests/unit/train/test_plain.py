from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import feta
from feta import (
    Argmax,
    FairPredictor,
    FeatureSpace,
    Integer,
    Model,
    NetworkError,
    SchemaError,
    Tolerance,
)
from feta.train import checkpoint_file
from feta.train.plain import PlainTrainer
from feta.train.split import Split, draw
from feta.train.task import Task
from tests.extras import needs
from tests.unit.train.people import CLASSES, LABELS, PEOPLE, SCORES, SPACE

TRAINER = PlainTrainer(
    SPACE, hidden=(6,), learning_rates=(0.03, 0.001), batch_sizes=(16, 32), epochs=12
)


@needs("torch")
def test_training_learns_the_labels() -> None:
    run = replace(TRAINER, epochs=60).train(PEOPLE, LABELS)
    decisions = Model(SPACE, run.network).decide(PEOPLE)
    assert (decisions == LABELS).mean() > 0.93
    assert len(run.grid) == 4
    assert run.loss == min(entry[3] for entry in run.grid)
    assert (run.learning_rate, run.batch_size, run.epoch, run.loss) in run.grid


@needs("torch")
def test_the_network_depends_on_the_seed_only() -> None:
    first, second = (TRAINER.train(PEOPLE, LABELS).network.fingerprint for _ in range(2))
    assert first == second
    assert replace(TRAINER, seed=1).train(PEOPLE, LABELS).network.fingerprint != first


@needs("torch")
def test_several_classes_and_regression_are_learned() -> None:
    several = replace(TRAINER, rule=Argmax(("a", "b", "c")), epochs=60).train(PEOPLE, CLASSES)
    assert (np.argmax(several.network(PEOPLE), axis=1) == CLASSES).mean() > 0.85
    scores = replace(TRAINER, rule=Tolerance(0.1), epochs=60).train(PEOPLE, SCORES).network(PEOPLE)
    assert np.mean((scores[:, 0] - SCORES) ** 2) < 0.1 * SCORES.var()


@needs("torch")
def test_a_threshold_that_favors_low_scores_is_learned() -> None:
    rule = feta.Threshold(0.0, favors="below")
    run = replace(TRAINER, rule=rule, epochs=60).train(PEOPLE, LABELS)
    assert (Model(SPACE, run.network, rule).decide(PEOPLE) == LABELS).mean() > 0.93


@needs("torch")
def test_stacked_folds_are_trained_like_single_folds() -> None:
    task = Task(feta.Threshold(0.0))
    splits = [
        Split.of(SPACE, task, PEOPLE[k:], LABELS[k:], validation=None, seed=k) for k in (0, 7)
    ]
    stacked = TRAINER.train_folds(splits)
    single = TRAINER.train_folds(splits[:1])
    assert stacked[0].epoch == single[0].epoch
    stacked_scores, single_scores = stacked[0].network(PEOPLE), single[0].network(PEOPLE)
    assert np.allclose(stacked_scores, single_scores, rtol=1e-6, atol=1e-9)  # another order of sums


@needs("torch")
def test_the_last_epoch_can_be_chosen() -> None:
    run = replace(TRAINER, epoch="last").train(PEOPLE, LABELS)
    assert {entry[2] for entry in run.grid} == {12}


@needs("torch")
def test_a_diverging_learning_rate_is_not_chosen_and_alone_is_refused() -> None:
    trainer = replace(TRAINER, rule=Tolerance(1.0), learning_rates=(1e200, 0.01), epoch="last")
    assert trainer.train(PEOPLE, SCORES).learning_rate == 0.01
    with pytest.raises(NetworkError, match="lower the learning rate"):
        replace(trainer, learning_rates=(1e200,)).train(PEOPLE, SCORES)


@needs("torch")
def test_a_blind_network_does_not_read_sensitive_columns() -> None:
    run = replace(TRAINER, blind=True).train(PEOPLE, LABELS)
    assert not run.network.first.slopes[:, SPACE.sensitive_columns].any()
    model = Model(SPACE, run.network)
    assert feta.tally(model, PEOPLE).unanimous.all()
    assert (FairPredictor(model).decide(PEOPLE) == model.decide(PEOPLE)).all()


@needs("torch")
def test_a_sensitive_scale_is_a_change_of_units_in_training() -> None:
    """Scale 4 equals training on sensitive columns that are four times as large."""
    blind = replace(TRAINER, blind=True)
    scaled = replace(blind, sensitive_scale=4.0)
    assert (
        scaled.train(PEOPLE, LABELS).network.fingerprint
        == blind.train(PEOPLE, LABELS).network.fingerprint
    )  # nothing is read
    task = Task(feta.Threshold(0.0))
    split = Split.of(SPACE, task, PEOPLE, LABELS, validation=None, seed=0)
    plain, larger = (replace(TRAINER, sensitive_scale=k).scaling(split) for k in (1.0, 4.0))
    sensitive = SPACE.sensitive_columns
    assert (larger(PEOPLE)[:, sensitive] == 4 * plain(PEOPLE)[:, sensitive]).all()
    assert (larger(PEOPLE)[:, ~sensitive] == plain(PEOPLE)[:, ~sensitive]).all()
    run = replace(TRAINER, sensitive_scale=4.0, epochs=60).train(PEOPLE, LABELS)
    assert (Model(SPACE, run.network).decide(PEOPLE) == LABELS).mean() > 0.93  # in raw units


@needs("torch")
def test_weight_decay_makes_the_parameters_smaller() -> None:
    without, decayed = (
        replace(TRAINER, weight_decay=decay, standardize=False, epoch="last").train(PEOPLE, LABELS)
        for decay in (0.0, 1.0)
    )
    sizes = [
        sum(float((layer.weight**2).sum()) for layer in run.network.layers)
        for run in (without, decayed)
    ]
    assert sizes[1] < 0.9 * sizes[0]


@needs("torch")
def test_a_fixed_subset_is_the_same_each_epoch_and_a_fresh_one_is_not() -> None:
    fixed = replace(TRAINER, sample_fraction=0.05, subset="fixed", epoch="last", epochs=30)
    fresh = replace(fixed, subset="fresh")
    assert (
        fixed.train(PEOPLE, LABELS).loss > fresh.train(PEOPLE, LABELS).loss
    )  # seven people are not enough
    rng = np.random.default_rng(0)
    fixed_rows = [draw(140, 0.05, "fixed", 3, rng).tolist() for _ in range(4)]
    assert fixed_rows == [fixed_rows[0]] * 4
    fresh_rows = [draw(140, 0.05, "fresh", 3, rng).tolist() for _ in range(4)]
    assert len({tuple(rows) for rows in fresh_rows}) == 4
    assert {len(rows) for rows in fixed_rows + fresh_rows} == {7}


@needs("torch")
@pytest.mark.parametrize("stop", [1, 5, 11])
def test_an_interrupted_training_resumes_at_its_epoch(
    stop: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint_file, "EVERY", 0.0)
    path = tmp_path / "training"
    epochs = []

    def interrupt(share: float) -> None:
        epochs.append(share)
        if len(epochs) == stop:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        TRAINER.train(PEOPLE, LABELS, checkpoint=path, progress=interrupt)
    epochs = [0.0] * stop  # prevents a second interruption
    run = TRAINER.train(PEOPLE, LABELS, checkpoint=path, progress=interrupt)
    assert len(epochs) == 2 * TRAINER.epochs  # no epoch was repeated
    assert run.network.fingerprint == TRAINER.train(PEOPLE, LABELS).network.fingerprint


@needs("torch")
def test_a_checkpoint_of_another_training_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "training"
    single = replace(TRAINER, batch_sizes=(16,))
    single.train(PEOPLE, LABELS, checkpoint=path)
    with pytest.raises(NetworkError, match="its data or settings differ; delete it"):
        replace(single, seed=1).train(PEOPLE, LABELS, checkpoint=path)
    with pytest.raises(NetworkError, match="its data or settings differ; delete it"):
        single.train(PEOPLE, ~LABELS, checkpoint=path)
    path.write_bytes(b"nothing of the kind")
    with pytest.raises(NetworkError, match="the file is not a checkpoint of a training"):
        single.train(PEOPLE, LABELS, checkpoint=path)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epochs": 0}, "invalid epochs: got 0; expected an integer above 0"),
        ({"epochs": True}, "invalid epochs: got True; expected an integer above 0"),
        (
            {"sample_fraction": 0.0},
            "invalid sample_fraction: got 0.0; expected a number above 0 and at most 1",
        ),
        ({"epoch": "first"}, "invalid epoch: got 'first'; expected one of 'best', 'last'"),
        ({"subset": "new"}, "invalid subset: got 'new'; expected one of 'fresh', 'fixed'"),
        (
            {"sensitive_scale": 0.0},
            "invalid sensitive_scale: got 0.0; expected a number above 0",
        ),
        (
            {"sensitive_scale": "4"},
            "invalid sensitive_scale: got '4'; expected a number above 0",
        ),
        ({"weight_decay": -0.1}, "invalid weight_decay: got -0.1; expected a number, 0 or more"),
        ({"weight_decay": None}, "invalid weight_decay: got None; expected a number, 0 or more"),
        ({"learning_rates": ()}, r"invalid learning_rates: got \(\); expected numbers above 0"),
        ({"learning_rates": (-1.0,)}, "invalid learning_rates: got .*; expected numbers above 0"),
        ({"batch_sizes": ()}, "invalid batch size: got .*; expected an integer above 0"),
        ({"hidden": (0,)}, "invalid width of a hidden layer: got 0; expected an integer above 0"),
        ({"activation": "maxout"}, "invalid activation: got 'maxout'; expected one of "),
        ({"rule": feta.OneVsRest(("a", "b"), "a")}, "training needs all classes"),
    ],
)
def test_invalid_settings_are_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        replace(TRAINER, **settings)  # type: ignore[arg-type]  # invalid on purpose


@needs("torch")
def test_people_and_labels_are_checked() -> None:
    with pytest.raises(
        feta.DomainError, match="invalid label in row 3: got 2; expected an integer from 0 to 1"
    ):
        TRAINER.train(PEOPLE, [0, 1, 1, 2] + [0] * 156)
    with pytest.raises(
        feta.DomainError, match=r"invalid labels: got .*; expected 160 numbers or booleans"
    ):
        TRAINER.train(PEOPLE, ["yes"] * 160)
    with pytest.raises(
        feta.DomainError, match="invalid label in row 0: got nan; expected a finite number"
    ):
        replace(TRAINER, rule=Tolerance(1.0)).train(PEOPLE, [np.nan] * 160)
    with pytest.raises(
        feta.DomainError, match=r"'age' is invalid: .*; expected an integer from 18 to 30"
    ):
        TRAINER.train(PEOPLE + 50, LABELS)
    with pytest.raises(feta.DomainError, match="got 160 for training and 0 for validation"):
        TRAINER.train(PEOPLE, LABELS, validation=(PEOPLE[:0], LABELS[:0]))
    sensitive = FeatureSpace((Integer("age", 18, 30, sensitive=True),))
    with pytest.raises(SchemaError, match="a blind network needs a column that is not sensitive"):
        PlainTrainer(sensitive, blind=True).train(PEOPLE[:, :1], LABELS)
