import numpy as np
import pytest

from feta import Argmax, FeatureSpace, Integer, Model, Network, Real, Tolerance, Unfair, worst
from feta.verdict.counterexample import Counterexample

SPACE = FeatureSpace((Integer("age", 0, 4, sensitive=True), Real("income", -9, 9)))
# Scores: 1, age and −income.
SEVERAL = Model(
    SPACE,
    Network.from_layers([([[0.0, 0.0], [1.0, 0.0], [0.0, -1.0]], [1.0, 0.0, 0.0])]),
    Argmax(("a", "b", "c")),
)


def worst_pair(model: Model) -> Counterexample:
    verdict = worst(model, np.array([0.0, -0.5]))
    assert isinstance(verdict, Unfair)
    return verdict.counterexample


def test_the_margin_of_several_classes_compares_the_counterparts_class_with_the_persons() -> None:
    pair = worst_pair(SEVERAL)
    assert pair.decisions == (0, 1)
    assert pair.margins(SEVERAL.rule).tolist() == [-1.0, 3.0]
    assert pair.margins(SEVERAL.rule)[1] == pair.gap


@pytest.mark.parametrize(("chosen", "expected"), [("a", [0.5, -3.0]), ("b", [-1.0, 3.0])])
def test_with_one_class_the_margin_is_over_the_best_other(
    chosen: str, expected: list[float]
) -> None:
    model = SEVERAL.one_vs_rest(chosen)
    assert worst_pair(model).margins(model.rule).tolist() == expected


@pytest.mark.parametrize("options", [{"rule": Tolerance(1.0)}, {"threshold": 1.0}])
def test_one_score_is_shown_as_it_is(options: dict[str, object]) -> None:
    model = Model(SPACE, Network.from_layers([([[1.0, 1.0]], [0.0])]), **options)  # type: ignore[arg-type]  # either
    assert worst_pair(model).margins(model.rule).tolist() == [-0.5, 3.5]
