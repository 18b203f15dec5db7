from pathlib import Path

import numpy as np
import pytest

from feta.errors import SchemaError
from feta.reproduce.bench import Bench, bench_of, people_of
from feta.reproduce.protocol import PROTOCOLS, protocol_of
from feta.reproduce.steps import units_of
from tests.unit.reproduce.tiny import TINY


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


def test_folds_part_everybody_once() -> None:
    def bench(fold: int) -> Bench:
        return bench_of(
            TINY,
            seed=1,
            fold=fold,
            variant="",
            folder=Path(),
            checkpoint=Path(),
            known={},
            tell=lambda _: None,
        )

    everybody = people_of("german", TINY.rows, 1).rows
    folds = [bench(fold) for fold in range(5)]
    tested = np.concatenate([one.test for one in folds])
    assert np.array_equal(np.unique(tested, axis=0), np.unique(everybody, axis=0))
    for one in folds:
        assert len(one.test) == 60
        assert (len(one.split.people), len(one.split.held)) == (216, 24)
        assert one.sampled.all()
