from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

from feta.arrays import Flags, Matrix
from feta.errors import SchemaError
from feta_paper.fold import Bench, bench_of, people_of
from feta_paper.protocol import PROTOCOLS, Protocol, protocol_of
from feta_paper.steps import units_of
from feta_paper.training import grid
from tests.extras import needs
from tests.paper.tiny import TINY


def test_the_appendix_is_kept_to() -> None:
    german, law, adult = (PROTOCOLS[name] for name in ("german", "law", "adult"))
    assert (german.rho, law.rho, adult.rho) == (1.0, 0.02, 0.01)
    assert {one.fair_epochs for one in PROTOCOLS.values()} == {50}
    assert (german.epochs, german.epoch, adult.epochs) == (500, "best", 500)
    assert (law.learning_rates, law.batch_sizes, law.epochs, law.epoch) == (
        (0.01,),
        (256,),
        100,
        "last",
    )
    for one in (german, adult):
        assert (one.learning_rates, one.batch_sizes) == ((0.01, 0.001, 0.0001), (64, 128))
    assert (german.test_share, law.test_share, adult.test_share) == (1.0, 1.0, 0.01)
    assert (german.raw, law.raw, adult.raw) == (False, True, False)
    assert PROTOCOLS["ipums"] == replace(adult, dataset="ipums")
    assert (german.keep, law.keep, adult.keep) == ("all", "counterexamples", "counterexamples")


def test_a_quick_protocol_says_so_and_has_another_checksum() -> None:
    quick = protocol_of("german", quick=True)
    assert quick.digest != protocol_of("german").digest
    assert any("quick" in note for note in quick.notes())
    assert not protocol_of("german").notes()


def test_an_unknown_data_set_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(SchemaError, match="'german', 'adult', 'law', 'ipums'"):
        protocol_of("compas")


@pytest.mark.parametrize("name", PROTOCOLS)
def test_each_unit_comes_after_what_it_needs(name: str) -> None:
    before: set[tuple[str, int]] = set()
    for unit in units_of(protocol_of(name), 2):
        assert unit.needs <= before
        before.add(unit.key)
    assert len(before) == len(units_of(protocol_of(name), 2))


def test_law_has_unscaled_inputs_and_a_start_of_its_own() -> None:
    names = {unit.name for unit in units_of(protocol_of("law"), 1)}
    assert {"raw.nn_b", "raw.trained", "start"} <= names
    others = {unit.name for unit in units_of(protocol_of("german"), 1)}
    assert not any(name.startswith("raw.") for name in others)
    assert "start" not in others


def bench(fold: int, protocol: Protocol = TINY) -> Bench:
    folder = Path()
    return bench_of(protocol, seed=1, fold=fold, variant="", folder=folder, checkpoint=folder, known={}, tell=lambda _: None)  # fmt: skip


def labeled(people: Matrix, labels: Flags) -> list[bytes]:
    return [row.tobytes() + bytes([int(label)]) for row, label in zip(people, labels, strict=True)]


def test_folds_part_everybody_once() -> None:
    people = people_of("german", TINY.rows, 1)
    everybody = labeled(people.rows, people.labels)
    folds = [bench(fold) for fold in range(5)]
    tested = [labeled(one.test, one.labels) for one in folds]
    assert sorted(chain(*tested)) == sorted(everybody)
    assert len(set(everybody)) == TINY.rows  # else nobody could tell who is where
    for one, test in zip(folds, tested, strict=True):
        learn = labeled(one.split.people, one.split.targets == 1)
        held = labeled(*one.validation)
        assert [len(part) for part in (test, learn, held)] == [60, 216, 24]
        assert sorted(test + learn + held) == sorted(everybody)


def test_a_share_of_the_fold_is_drawn_by_the_fold() -> None:
    assert bench(0).sampled.all()
    drawn = [bench(fold, replace(TINY, test_share=0.1)).sampled for fold in (0, 0, 1)]
    assert [one.sum() for one in drawn] == [6, 6, 6]
    assert np.array_equal(drawn[0], drawn[1])
    assert not np.array_equal(drawn[0], drawn[2])


@needs("torch")
def test_networks_are_three_times_sixteen() -> None:
    run = grid(bench(0)).train_folds([bench(0).split])[0]
    assert [layer.weight.shape for layer in run.network.layers] == [(16, 16), (16, 16), (1, 16)]
    assert run.network.first.slopes.shape == (16, 61)
