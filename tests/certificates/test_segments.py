from pathlib import Path

import numpy as np
import pytest

from feta import Categorical, FeatureSpace, Integer, Levels, Model, Real, Threshold
from feta.io.canonical_json import exact_text
from feta.io.model_file import save_model
from feta_check.claims import Person
from feta_check.model import Model as StoredModel
from feta_check.model_file import ModelFile
from tests import oracle
from tests.strategies import random_network

SPACE = FeatureSpace(
    (
        Integer("age", -40, 60, sensitive=True, missing=True),
        Levels("hours", (-3.0, -0.5, 0.0, 0.1, 7.0), sensitive=True),
        Categorical("sex", ("f", "m"), sensitive=True),
        Real("income", 0, 9),
    )
)
PERSON = SPACE.encode({"age": 0, "hours": 0.1, "sex": "f", "income": 2.3})[0]


@pytest.mark.parametrize("seed", range(12))
def test_scores_along_lines_are_those_of_single_points(seed: int, tmp_path: Path) -> None:
    network = random_network(np.random.default_rng(seed), SPACE, 2, plain=seed % 3 == 0)
    model = Model(SPACE, network.output(0), Threshold(0.0))
    save_model(model, tmp_path / "model.feta")
    stored = StoredModel(ModelFile(tmp_path / "model.feta"))
    cells = [exact_text(0.0), exact_text(0.1), 0, exact_text(2.3)]
    person = Person(stored, {"person": cells}, 0.0)
    restricted, whole = person.counterparts, person.whole
    points = list(restricted.points(whole))
    scores = dict(points)
    assert len(points) == len(scores) == stored.space.size
    for number, other in list(enumerate(oracle.counterparts(model, PERSON)))[seed::17]:
        (score,) = oracle.scores(model, other)
        assert scores[number][0] * restricted.unit == score
    last = [high for _, high in whole]
    assert list(scores[stored.space.size - 1]) == list(restricted.scores(last))
