"""Edges at which a fault of the checker would change a result: kinks, places, ids, levels."""

from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from feta import FeatureSpace, Integer, Levels, Model, Network, Threshold
from feta.io.canonical_json import exact_text
from feta.io.model_file import save_model
from feta.scorer.network.activation import clip
from feta_check.claims import Person, _count
from feta_check.forest import RestrictedForest
from feta_check.means import Means
from feta_check.model import Model as StoredModel
from feta_check.model_file import ModelFile
from feta_check.reading import Unreadable
from feta_check.rules import Rule

TINY = 2.0**-20


def scores_of(folder: Path, model: Model, cells: list[object]) -> dict[int, Fraction]:
    """Return the checker's scores of all counterparts of a person, by id."""
    save_model(model, folder / "model.feta")
    stored = StoredModel(ModelFile(folder / "model.feta"))
    person = Person(stored, {"person": cells}, 0.0)
    points = person.counterparts.points(person.whole)
    return {number: scores[0] * person.counterparts.unit for number, scores in points}


@pytest.mark.parametrize("slope", [1.0, 3.0])
def test_a_kink_away_from_zero_ends_a_run(slope: float, tmp_path: Path) -> None:
    space = FeatureSpace((Integer("age", 1, 40, sensitive=True), Integer("income", 0, 9)))
    network = Network.from_layers(
        [([[slope, 0.0]], [0.0]), ([[1.0]], [0.0])], activation=clip(0.0, 6.0)
    )
    model = Model(space, network, Threshold(5.0))
    scores = scores_of(tmp_path, model, [exact_text(1.0), exact_text(0.0)])
    expected = [Fraction(min(slope * age, 6.0)) for age in range(1, 41)]
    assert [scores[number] for number in range(40)] == expected


def test_products_of_small_numbers_are_exact(tmp_path: Path) -> None:
    space = FeatureSpace(
        (Levels("dose", (0.0, TINY, 1.0), sensitive=True), Integer("income", 0, 9))
    )
    model = Model(space, Network.from_layers([([[TINY, 0.0]], [0.0])]), Threshold(0.5))
    scores = scores_of(tmp_path, model, [exact_text(0.0), exact_text(0.0)])
    assert [scores[number] for number in range(3)] == [0, Fraction(TINY) ** 2, Fraction(TINY)]


def test_the_ids_of_a_product_of_values() -> None:
    counterparts = cast(Any, SimpleNamespace(forest=SimpleNamespace(counts=(3, 5))))
    assert RestrictedForest._ids(counterparts, [0b111, 0b11111]) == list(range(15))
    assert RestrictedForest._ids(counterparts, [0b110, 0b10010]) == [6, 9, 11, 14]


@pytest.mark.parametrize(("value", "decision"), [(1, 1), (2, 0)])
def test_without_a_level_the_threshold_is_the_one_of_the_rule(value: int, decision: int) -> None:
    means = Means(cast(Any, None), {"graded": False, "level": None, "vote": "mean_score"})
    entry = {"kind": "Threshold", "value": value, "favors": "above", "equality": "favorable"}
    # The mean of three scores of 2 and one of 0 is 1.5.
    assert means.decide([(3, [2]), (1, [0])], Rule(entry, Fraction(1))) == decision


def test_a_choice_needs_two_classes() -> None:
    with pytest.raises(Unreadable, match="invalid rule"):
        Rule({"kind": "Argmax", "classes": ["a"]}, Fraction(1))


def test_a_box_counts_both_ends() -> None:
    assert _count([(0, 3), (1, 2), (5, 5)]) == 8
