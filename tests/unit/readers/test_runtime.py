import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import feta
from feta import Argmax, FeatureSpace, Integer, Model, NetworkError, Real, Threshold, Tolerance
from feta.space.sampling import draw_people

SPACE = FeatureSpace((Integer("age", 18, 60, sensitive=True), Real("income", 0, 9)))
PEOPLE = draw_people(SPACE, np.random.default_rng(0), 200)
SCORE = PEOPLE[:, 0] / 10 + PEOPLE[:, 1]


@pytest.mark.parametrize("favors", ["above", "below"])
@pytest.mark.parametrize("chance", [0.5, 0.3])
def test_an_estimator_decides_with_any_threshold(favors: str, chance: float) -> None:
    pipeline = make_pipeline(StandardScaler(), LogisticRegression()).fit(PEOPLE, SCORE > 8)
    rule = Threshold.at_probability(chance, favors)  # type: ignore[arg-type]
    model = Model(SPACE, feta.read_sklearn(pipeline, SPACE), rule)
    assert (feta.runtime_of(pipeline, model)(PEOPLE) == model.decide(PEOPLE)).all()


def test_several_classes_and_scores_are_replayed() -> None:
    kinds = np.digitize(SCORE, [6, 9])
    several = make_pipeline(StandardScaler(), LogisticRegression()).fit(PEOPLE, kinds)
    model = Model(SPACE, feta.read_sklearn(several, SPACE), Argmax(("0", "1", "2")))
    assert (feta.runtime_of(several, model)(PEOPLE) == model.decide(PEOPLE)).all()
    assert (
        feta.runtime_of(several, model.one_vs_rest("1"))(PEOPLE) == (model.decide(PEOPLE) == 1)
    ).all()
    line = make_pipeline(StandardScaler(), LinearRegression()).fit(PEOPLE, SCORE)
    scored = Model(SPACE, feta.read_sklearn(line, SPACE), Tolerance(1.0))
    result = feta.audit(scored, [{"age": 30, "income": 2.0}], replay=feta.runtime_of(line, scored))
    assert [pair.replayed for pair in result.pairs] == [True]


def test_a_model_that_cannot_decide_is_refused() -> None:
    network = feta.Network.from_layers([([[0.0, 1.0]], [0.0])])
    with pytest.raises(
        NetworkError,
        match="replayed in this object: got int; expected an estimator or a torch module",
    ):
        feta.runtime_of(5, Model(SPACE, network))
