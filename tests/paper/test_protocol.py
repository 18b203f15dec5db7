"""Tests of the protocols, their units, and the folds."""

from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

from feta.arrays import Flags, Matrix
from feta.errors import SchemaError
from feta_paper.fold import Fold, load_fold, load_people
from feta_paper.protocol import PROTOCOLS, Protocol, protocol_of
from feta_paper.steps import units_of
from feta_paper.training import plain_trainer
from tests.extras import needs
from tests.paper.tiny import TINY


def test_protocols_follow_the_appendix() -> None:
    german, law, adult = (PROTOCOLS[name] for name in ("german", "law", "adult"))
    assert (german.rho, law.rho, adult.rho) == (1.0, 0.02, 0.01)
    assert {protocol.fair_epochs for protocol in PROTOCOLS.values()} == {50}
    assert (german.epochs, german.epoch, adult.epochs) == (500, "best", 500)
    assert (law.learning_rates, law.batch_sizes, law.epochs, law.epoch) == (
        (0.01,),
        (256,),
        100,
        "last",
    )
    for protocol in (german, adult):
        assert (protocol.learning_rates, protocol.batch_sizes) == ((0.01, 0.001, 0.0001), (64, 128))
    assert (german.test_share, law.test_share, adult.test_share) == (1.0, 1.0, 0.01)
    assert (german.raw, law.raw, adult.raw) == (False, True, False)
    assert PROTOCOLS["ipums"] == replace(adult, dataset="ipums")
    assert (german.keep, law.keep, adult.keep) == ("all", "counterexamples", "counterexamples")


def test_a_quick_protocol_has_a_note_and_another_checksum() -> None:
    quick = protocol_of("german", quick=True)
    assert quick.digest != protocol_of("german").digest
    assert any("quick" in note for note in quick.notes())
    assert not protocol_of("german").notes()


def test_an_unknown_data_set_is_refused_with_the_known_names() -> None:
    with pytest.raises(SchemaError, match="'german', 'adult', 'law', 'ipums'"):
        protocol_of("compas")


@pytest.mark.parametrize("name", PROTOCOLS)
def test_each_unit_comes_after_those_that_it_needs(name: str) -> None:
    before: set[tuple[str, int]] = set()
    for unit in units_of(protocol_of(name), 2):
        assert unit.needs <= before
        before.add(unit.key)
    assert len(before) == len(units_of(protocol_of(name), 2))


def test_law_has_unscaled_inputs_and_a_separate_start() -> None:
    names = {unit.name for unit in units_of(protocol_of("law"), 1)}
    assert {"raw.nn_b", "raw.trained", "start"} <= names
    others = {unit.name for unit in units_of(protocol_of("german"), 1)}
    assert not any(name.startswith("raw.") for name in others)
    assert "start" not in others


def fold(number: int, protocol: Protocol = TINY) -> Fold:
    return load_fold(
        protocol,
        seed=1,
        number=number,
        variant="",
        folder=Path(),
        checkpoint=Path(),
        known={},
        progress=lambda _: None,
    )


def labeled(people: Matrix, labels: Flags) -> list[bytes]:
    return [row.tobytes() + bytes([int(label)]) for row, label in zip(people, labels, strict=True)]


def test_each_person_is_in_one_test_fold() -> None:
    people = load_people("german", TINY.rows, 1)
    all_rows = labeled(people.rows, people.labels)
    folds = [fold(number) for number in range(5)]
    tested = [labeled(part.test, part.labels) for part in folds]
    assert sorted(chain(*tested)) == sorted(all_rows)
    assert len(set(all_rows)) == TINY.rows  # equal rows could not be distinguished
    for part, test in zip(folds, tested, strict=True):
        learn = labeled(part.split.people, part.split.targets == 1)
        validation_rows = labeled(*part.validation)
        assert [len(rows) for rows in (test, learn, validation_rows)] == [60, 216, 24]
        assert sorted(test + learn + validation_rows) == sorted(all_rows)


def test_the_sample_of_a_fold_depends_on_the_fold() -> None:
    assert fold(0).sampled.all()
    samples = [fold(number, replace(TINY, test_share=0.1)).sampled for number in (0, 0, 1)]
    assert [sample.sum() for sample in samples] == [6, 6, 6]
    assert np.array_equal(samples[0], samples[1])
    assert not np.array_equal(samples[0], samples[2])


@needs("torch")
def test_networks_have_three_hidden_layers_of_sixteen() -> None:
    run = plain_trainer(fold(0)).train_folds([fold(0).split])[0]
    assert [layer.weight.shape for layer in run.network.layers] == [(16, 16), (16, 16), (1, 16)]
    assert run.network.first.slopes.shape == (16, 61)
