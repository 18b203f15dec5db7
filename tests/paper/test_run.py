"""Tests of a run: results, resuming, and its journal."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from feta.errors import EngineError, SchemaError
from feta_paper import run as running
from feta_paper.gather import gather
from feta_paper.journal import RunJournal
from feta_paper.labels import step_title
from feta_paper.measurements import Measurements
from feta_paper.protocol import Protocol
from feta_paper.run import Run, carry_out
from feta_paper.steps import Unit, units_of
from tests.extras import needs
from tests.paper.tiny import TINY, timeless

ALL_ARMS = (
    "nn_b", "vote", "majority", "empirical_vote", "trained", "trained_vote",
    "trained_empirical_vote", "other_batch", "other_batch_vote", "default", "default_vote", "span",
    "span_vote", "blind_full", "blind_fixed", "blind_fresh", "blind_logistic", "lcifr", "lcifr_all",
    "lcifr_original", "chosen",
)  # fmt: skip


class Killed(Exception):
    """Simulation of a kill between two results."""


def measure(
    folder: Path, *, jobs: int = 1, stop_at: str = "", seed: int = 3, protocol: Protocol = TINY
) -> Measurements:
    folder.mkdir(exist_ok=True)
    run = Run(protocol, seed, folder, folds=1)

    def watch(share: float, current: str) -> None:
        assert 0 <= share <= 1 + 1e-9
        if stop_at and stop_at in current:
            raise Killed

    with RunJournal(folder / "journal.sqlite", {"seed": seed}) as journal:
        carry_out(run, journal, jobs=jobs, watch=watch)
        measured = gather(run, journal)
    measured.write(folder / "results.json")
    return measured


@pytest.fixture(scope="module")
def complete_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("torch", reason="torch is not installed")
    folder = tmp_path_factory.mktemp("whole")
    measure(folder)
    return folder


def test_all_quantities_of_the_paper_are_measured(complete_run: Path) -> None:
    measured = Measurements.read(complete_run / "results.json")
    for arm in ALL_ARMS:
        (figure,) = measured.figures[f"{arm}.accuracy"]
        assert 0 <= figure <= 100
    for arm in ("nn_b", "trained", "other_batch", "default", "span", "lcifr", "lcifr_original"):
        assert f"{arm}.ce_rate" in measured.figures
    assert measured.figures["nn_b.ce_rate_real"] >= measured.figures["nn_b.ce_rate"]
    for curve in ("loss", "accuracy", "ce_rate", "average_violation", "maximum_violation"):
        assert len(measured.curves[f"trained.{curve}"][0]) == TINY.fair_epochs + 1
    methods = ("naive", "vectorized", "compiled")
    assert measured.figures["cost.sizes"] == [2, 8, 456]
    assert all(len(measured.times[f"cost.{way}_seconds"]) == 3 for way in methods)
    for arm in ("vote", "trained_vote", "forward"):
        assert measured.times[f"{arm}.seconds"][0] > 0
        assert measured.times[f"{arm}.single_seconds"][0] > 0
    assert measured.times["counting.naive_seconds"][0] > 0
    assert measured.settings["chosen.fold0"]
    assert measured.title == "German credit"
    assert measured.rows == 300


@needs("torch")
def test_unscaled_inputs_the_last_epoch_and_a_share_of_the_fold(
    complete_run: Path, tmp_path: Path
) -> None:
    other = replace(TINY, raw=True, epoch="last", test_share=0.5, numbers=False)
    measured = measure(tmp_path, protocol=other)
    usual = Measurements.read(complete_run / "results.json")
    for arm in ("nn_b", "vote", "trained", "trained_vote", "majority", "blind_full", "blind_fresh"):
        assert len(measured.figures[f"raw.{arm}.accuracy"]) == 1
        assert len(measured.figures[f"sample.{arm}.accuracy"]) == 1
    assert measured.figures["majority.accuracy"] == usual.figures["majority.accuracy"]
    # The sample has 30 people.
    (sampled,) = measured.figures["sample.majority.accuracy"]
    assert (100 / 30) * round(sampled * 0.3) == pytest.approx(sampled)
    assert measured.versions["model.nn_b.fold0"] != measured.versions["model.raw.nn_b.fold0"]
    assert measured.versions["model.start.fold0"] == usual.versions["model.nn_b.fold0"]
    assert "lcifr_all.accuracy" not in measured.figures


def test_a_run_resumed_in_several_processes_ends_with_the_same_results(
    complete_run: Path, tmp_path: Path
) -> None:
    with pytest.raises(Killed):
        measure(tmp_path, stop_at="default")
    assert not (tmp_path / "results.json").exists()
    measure(tmp_path, jobs=2)
    assert timeless(tmp_path / "results.json") == timeless(complete_run / "results.json")


def test_finished_units_do_not_run_again(
    complete_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("this unit was finished")

    before = timeless(complete_run / "results.json")
    monkeypatch.setattr(running.Run, "carry_out", refuse)
    measure(complete_run)
    assert timeless(complete_run / "results.json") == before


def test_another_seed_needs_another_folder(complete_run: Path) -> None:
    with pytest.raises(SchemaError, match="the seed was 3, and is 4 now"):
        measure(complete_run, seed=4)


def test_a_damaged_journal_is_set_aside(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    path.write_bytes(b"not a journal, but long enough to be looked at" * 9)
    with RunJournal(path, {}) as journal:
        assert journal.set_aside == tmp_path / "journal.sqlite.damaged-1"
        journal.note(("step", 0), {"figures": {"x": 1.0}}, 2, 3.0)
        journal.note(("step", 1), {"figures": {"x": 2.0}}, 2.5, 3.0)
        journal.base.execute("UPDATE outcomes SET outcome = '{}' WHERE fold = 1")
    with RunJournal(path, {}) as journal:  # a result with a wrong digest is missing
        assert journal.done() == {("step", 0): ({"figures": {"x": 1.0}}, 2.0)}


def test_two_runs_do_not_share_a_folder(tmp_path: Path) -> None:
    with (
        RunJournal(tmp_path / "journal.sqlite", {}),
        pytest.raises(SchemaError, match="another run is writing"),
    ):
        RunJournal(tmp_path / "journal.sqlite", {})


def test_a_dead_worker_is_reported_with_how_to_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "_start_worker", _die)
    with pytest.raises(EngineError, match="finished steps are saved; run the same command again"):
        measure(tmp_path, jobs=2)


def _die(*_: object) -> None:
    os._exit(9)


def test_every_step_has_a_title() -> None:
    for unit in units_of(replace(TINY, raw=True, epoch="last"), 1):
        assert step_title(unit.name) != unit.name
    assert step_title("raw.trained") == "CE-Fair training, raw inputs"


def test_variants_have_different_keys() -> None:
    step = units_of(TINY, 1)[0].step
    assert Unit(step, 0, "raw.").key == ("raw.nn_b", 0)
