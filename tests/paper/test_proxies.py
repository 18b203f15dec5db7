"""`feta reproduce proxies`: its arms, its measures, its tables, and that it resumes."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from feta.errors import SchemaError
from feta.metrics.equal_approval import approvals
from feta_paper.fold import load_people
from feta_paper.journal import RunJournal
from feta_paper.planted import Planted
from feta_paper.proxies import reproduce_proxies as command
from feta_paper.proxies.arms import TITLES
from feta_paper.proxies.proxy_results import MeanInterval, ProxyResults
from feta_paper.proxies.proxy_run import ProxyRun
from feta_paper.proxies.proxy_tables import proxy_markdown
from feta_paper.proxies.real import group_gap, members_of, space_of
from feta_paper.proxies.semi_synthetic import fitted_merits
from feta_paper.proxies.settings import FULL, QUICK
from feta_paper.reproduce import ReproduceOptions, run_reproduce
from feta_paper.run import carry_out
from tests.extras import needs

GERMAN = replace(
    QUICK,
    merits=replace(QUICK.merits, dataset="german", n_fitted=200, rows=None),
    trainings=QUICK.trainings[-1:],
    n_people=200,
    real=tuple(people for people in QUICK.real if people.dataset == "german"),
    rows=200,
)


class Killed(Exception):
    """Simulation of a kill between two results."""


def measure(folder: Path, *, stop_at: str = "") -> ProxyResults:
    folder.mkdir(exist_ok=True)
    run = ProxyRun(GERMAN, folder)

    def watch(share: float, current: str) -> None:
        assert 0 <= share <= 1 + 1e-9
        if stop_at and stop_at in current:
            raise Killed

    with RunJournal(folder / "journal.sqlite", {"settings": GERMAN.digest}) as journal:
        carry_out(run, journal, jobs=1, watch=watch)
        return ProxyResults.of(run, journal, {})


@needs("torch")
def test_an_interrupted_run_resumes_with_the_same_figures_and_tables(tmp_path: Path) -> None:
    whole = measure(tmp_path / "whole")
    with pytest.raises(Killed):
        measure(tmp_path / "part", stop_at="real.german")
    assert measure(tmp_path / "part").figures == whole.figures
    planted, real = whole.figures["planted.scaled.0.9"], whole.figures["real.german"]
    assert list(planted) == [1000, 1001]
    assert list(real) == [2000, 2001]  # seed 1000, two folds
    assert {key.partition(".")[0] for key in planted[1000]} == TITLES.keys() - {"scaled"}
    assert {key.partition(".")[0] for key in real[2000]} == set(TITLES)
    assert "ce_fair.accuracy" not in real[2001]  # CE-Fair and span on one fold only
    for figures in real.values():
        assert all(0 <= figures[f"{arm}.favorable"] <= 1 for arm in ("blind", "soft", "majority"))
        assert all(-1 <= figures[f"{arm}.gap"] <= 1 for arm in ("blind", "soft", "majority"))
    text = proxy_markdown(whole)
    assert text.startswith("# What proxies carry\n\nA quick run.")
    assert all(text.count(f"| {title} |") for title in TITLES.values())


@needs("torch")
def test_the_command_writes_results_and_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = replace(GERMAN, seeds=(1000,), folds=2)
    monkeypatch.setattr(command, "QUICK", small)
    options = ReproduceOptions("proxies", None, True, 123, 1, tmp_path)
    assert run_reproduce(options) == 0
    content = json.loads((tmp_path / "results.json").read_text("utf-8"))
    assert content["digest"] == small.digest
    assert set(content["figures"]) == {"planted.scaled.0.9", "real.german"}
    assert "Processor time" in (tmp_path / "proxies.md").read_text("utf-8")
    monkeypatch.setattr(command, "QUICK", replace(small, n_people=201))
    with pytest.raises(SchemaError, match="the settings w"):
        run_reproduce(options)


@pytest.mark.parametrize(("folds", "seed", "name"), [(2, 123, "folds"), (None, 4, "seed")])
def test_folds_and_seeds_are_fixed(folds: int | None, seed: int, name: str) -> None:
    with pytest.raises(SchemaError, match=rf"--{name} is fixed for proxies: got .*; omit --{name}"):
        run_reproduce(ReproduceOptions("proxies", folds, True, seed, 1, None))


def test_the_full_settings_have_fresh_seeds_and_all_data_sets() -> None:
    assert FULL.seeds == tuple(range(1000, 1010))
    assert {people.name: len(people.seeds) for people in FULL.real} == {
        "german": 10,
        "law": 3,
        "adult, sex": 3,
        "adult": 1,
    }
    assert FULL.real[-1].fair_folds == 2
    assert {t.name for t in FULL.trainings} == {"short", "long", "regularized", "scaled"}
    assert FULL.digest != replace(FULL, scale=5.0).digest != QUICK.digest


def test_decisions_contain_the_share_that_was_put_into_them() -> None:
    planted = Planted.of(40_000, 0.6, seed=5)
    own = planted.favored - np.where(planted.minority, planted.effect, 0.0)
    assert planted.relearned_by(planted.fair >= 0.5) == 0
    assert planted.relearned_by(own >= 0.5) == pytest.approx(1, abs=0.05)
    random = np.random.default_rng(0).random(len(own)) < 0.5
    half = np.where(random, own, planted.fair) >= 0.5
    assert planted.relearned_by(half) == pytest.approx(0.5, abs=0.05)


def test_semi_synthetic_people_have_real_columns_and_a_planted_group() -> None:
    merits = fitted_merits(GERMAN.merits)
    trained, others = merits.draw(300, 0.9, seed=4)
    merits.space.check(trained.people)
    assert [attribute.name for attribute in merits.space.sensitive] == ["group"]
    real = {row.tobytes() for row in merits.rows}
    taken = [row[2:-1].tobytes() for people in (trained, others) for row in people.people]
    assert set(taken) <= real
    assert len(set(taken)) > 590  # everybody once; a few rows of the data set are equal
    assert np.corrcoef(trained.people[:, -1], trained.minority)[0, 1] == pytest.approx(0.9, abs=0.1)
    assert not np.array_equal(trained.people, merits.draw(300, 0.9, seed=5)[0].people)
    with pytest.raises(SchemaError, match="too many people: got 501 to train on"):
        merits.draw(501, 0.9, seed=0)


def test_the_odds_of_semi_synthetic_people_follow_the_real_labels() -> None:
    settings = replace(GERMAN.merits, training=replace(GERMAN.merits.training, epochs=12))
    merits = fitted_merits(settings)
    labels = load_people("german", None, 0).labels
    assert merits.odds[labels].mean() > merits.odds[~labels].mean() + 0.5
    assert np.abs(merits.odds - settings.intercept).max() <= settings.limit


def test_people_at_the_cut_share_the_remaining_approvals() -> None:
    scores = np.array([0.9, 0.5, 0.5, 0.5, 0.1])
    assert approvals(scores, 0).tolist() == [0, 0, 0, 0, 0]
    assert approvals(scores, 1).tolist() == [1, 0, 0, 0, 0]
    assert approvals(scores, 2) == pytest.approx([1, 1 / 3, 1 / 3, 1 / 3, 0])
    assert approvals(scores, 5).tolist() == [1, 1, 1, 1, 1]
    members = np.array([False, True, True, False, False])
    assert group_gap(approvals(scores, 2), members) == pytest.approx(1 / 3 - 4 / 9)


def test_groups_and_sensitive_attributes_are_those_of_the_table() -> None:
    people = load_people("german", 100, 0)
    german = FULL.real[0]
    members = members_of(people.dataset.space, people.rows, german)
    records = [people.dataset.space.decode(row) for row in people.rows]
    female = [str(record["personal_status"]).startswith("female") for record in records]
    assert members.tolist() == female
    only_age = space_of(people.dataset.space, replace(german, sensitive=("age",)))
    assert [attribute.name for attribute in only_age.sensitive] == ["age"]
    assert space_of(people.dataset.space, german) is people.dataset.space


def test_intervals_are_those_of_students_t() -> None:
    interval = MeanInterval.of([1.0, 2.0, 3.0])
    assert interval.mean == 2
    assert interval.radius == pytest.approx(4.302653 / math.sqrt(3), rel=1e-6)
    assert math.isnan(MeanInterval.of([1.0]).radius)


def test_a_mean_that_rounds_to_zero_has_no_sign() -> None:
    figures = {"real.german": {0: {"blind.accuracy": 0.5, "soft.accuracy": 0.49999}}}
    results = ProxyResults(GERMAN, figures, 1.0, {})
    row = next(line for line in proxy_markdown(results).splitlines() if "plain, soft" in line)
    assert row.split(" | ")[1:4] == ["1", "50.00", "0.00"]
