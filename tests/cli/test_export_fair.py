"""`feta export --fair` and `--mlflow`: what an installation elsewhere decides with."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from feta import (
    Categorical,
    FairPredictor,
    FeatureSpace,
    Integer,
    Model,
    Network,
    Real,
    Threshold,
    VoteWeights,
    save_model,
)
from feta.io.mlflow_folder import write_mlflow
from feta.rule import Argmax, OneVsRest, Rule, Tolerance
from feta.scorer.network.network import network_of
from feta.space.sampling import draw_people
from tests import forest_cases

Run = Callable[..., tuple[int, str, str]]

SPACE = FeatureSpace(
    (
        Integer("age", 18, 27, sensitive=True),
        Categorical("sex", ("female", "male"), sensitive=True),
        Integer("income", 0, 60),
        Real("debt", 0, 10),
        Categorical("town", ("a", "b"), missing=True),
        Categorical("guarantor", (False, True)),
        Integer("children", 0, 5, missing=True),
    )
)


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Model:
    """Write a model with weighted votes."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    weight = rng.normal(size=(4, SPACE.width))
    weight[:, 3] = [0.1, -0.1, 0.2, 0.05]
    people = SPACE.encode(frame(50).assign(age=rng.integers(18, 28, 50), sex="male"))
    layers = [(weight, rng.normal(size=4)), (rng.normal(size=(1, 4)), np.zeros(1))]
    network = Network.from_layers(layers)
    middle = float(np.median(network(people)))
    model = Model(SPACE, network, Threshold(middle), outcomes=("no", "yes"))
    save_model(FairPredictor(model, weights=VoteWeights.from_people(SPACE, people)), "model.feta")
    return model


def frame(n_people: int) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "income": rng.integers(0, 61, n_people),
            "debt": rng.uniform(0, 10, n_people),
            "town": rng.choice(np.array(["a", "b", None], dtype=object), n_people),
            "guarantor": rng.choice([True, False], n_people),
            "children": rng.choice([0.0, 3.0, np.nan], n_people),
        }
    )


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_a_graph_is_replayed_and_lists_its_columns(feta_: Run, precision: str) -> None:
    code, out, _ = feta_(
        "export", "model.feta", "--fair", "--out", "fair.onnx", "--precision", precision
    )
    assert code == 0
    assert f"Wrote fair.onnx ({precision}); evaluated on 1,000 random people: sure about" in out
    assert "0: income" in out
    assert "age" not in out
    assert sorted(path.name for path in Path().iterdir()) == ["fair.onnx", "model.feta"]


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), "nothing to write: expected --out FILE, --mlflow FOLDER, or both"),
        (("--fair", "--out", "fair.feta"), "--fair writes an ONNX graph; expected --out fair.onnx"),
        (("--fair", "--mlflow", "m"), "--fair writes an ONNX graph; expected --out fair.onnx"),
        (
            ("--fair", "--out", "f.onnx", "--precision", "half"),
            "invalid --precision: got 'half'; expected one of 'float32', 'float64'",
        ),
        (("--mlflow", "."), ".: --mlflow exists; expected the name of a new folder"),
    ],
)
def test_targets_that_cannot_be_written_are_refused(
    feta_: Run, arguments: tuple[str, ...], expected: str
) -> None:
    code, _, err = feta_("export", "model.feta", *arguments)
    assert code == 2
    assert expected in err
    assert [path.name for path in Path().iterdir()] == ["model.feta"]


@pytest.mark.filterwarnings("ignore")  # of mlflow and what it imports
@pytest.mark.parametrize("vote", ["majority", "mean_probability"])
def test_an_mlflow_model_decides_as_the_predictor(
    model: Model, feta_: Run, monkeypatch: pytest.MonkeyPatch, vote: str
) -> None:
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "file:./mlruns")
    if vote == "mean_probability":  # the recommended one, with weights and a level
        rng = np.random.default_rng(2)
        others = SPACE.encode(frame(200).assign(age=rng.integers(18, 28, 200), sex="female"))
        scorer = network_of(model.scorer).with_link("logit")
        graded = Model(SPACE, scorer, model.rule, outcomes=model.outcomes)
        fitted = FairPredictor.fitted(graded, others)
        assert fitted.vote == vote
        assert fitted.level is not None
        save_model(fitted, "model.feta")
    code, out, _ = feta_("export", "model.feta", "--mlflow", "deployed")
    assert code == 0
    assert "Wrote deployed: mlflow.pyfunc.load_model reads this folder." in out
    assert not list(Path("deployed").rglob("*.pkl"))
    people = frame(1000)
    answers = mlflow.pyfunc.load_model("deployed").predict(people)
    rows = SPACE.encode(people, sensitive="ignore")
    predictor = FairPredictor.load("model.feta")
    assert answers == [model.describe(outcome) for outcome in predictor.decide(rows).tolist()]
    assert set(answers) == {"no", "yes"}
    with pytest.raises(mlflow.exceptions.MlflowException, match="enforce schema"):
        mlflow.pyfunc.load_model("deployed").predict(people.drop(columns="income"))


@pytest.mark.filterwarnings("ignore")  # of mlflow and what it imports
@pytest.mark.parametrize("values", [(1, 2), (True, False), ("a", "b")])
def test_an_mlflow_model_takes_a_column_with_and_without_empty_cells(
    tmp_path: Path, values: tuple[str | int | bool, ...]
) -> None:
    """Pandas reads integers as floats, and booleans as objects, where a cell is empty."""
    mlflow = pytest.importorskip("mlflow")
    age = Integer("age", 18, 20, sensitive=True)
    kind, count = Categorical("kind", values, missing=True), Integer("count", 0, 5, missing=True)
    space = FeatureSpace((age, kind, count))
    weights = [[0.0, 1.0, -1.0, 2.0, 0.0, 3.0]]
    predictor = FairPredictor(Model(space, Network.from_layers([(weights, [0.0])]), Threshold(0.0)))
    write_mlflow(predictor, tmp_path / "deployed")
    model = mlflow.pyfunc.load_model(str(tmp_path / "deployed"))
    for cells in ([values[0], values[1]], [values[0], None], [None, values[1]]):
        for counts in ([1, 2], [1, None]):
            people = pd.DataFrame({"kind": cells, "count": counts})
            rows = space.encode(people, sensitive="ignore")
            truth = predictor.decide(rows).tolist()
            assert model.predict(people) == [predictor.model.describe(one) for one in truth]


@pytest.mark.filterwarnings("ignore")  # of mlflow and what it imports
@pytest.mark.parametrize("rule", [Threshold, Argmax, OneVsRest, Tolerance])
def test_an_mlflow_model_of_trees_decides_as_the_predictor(
    tmp_path: Path, rule: type[Rule]
) -> None:
    mlflow = pytest.importorskip("mlflow")
    drawn = (forest_cases.random_case(np.random.default_rng(seed), "free") for seed in range(99))
    case = next(case for case in drawn if type(case.rule) is rule)
    predictor = FairPredictor(case.model, weights=case.weights)
    write_mlflow(predictor, tmp_path / "deployed")
    people = draw_people(case.space, np.random.default_rng(0), 100)
    table = pd.DataFrame([case.space.decode(person) for person in people])
    answers = mlflow.pyfunc.load_model(str(tmp_path / "deployed")).predict(table)
    expected = predictor.decide(people).tolist()
    assert answers == [case.model.describe(outcome) for outcome in expected]


def test_trees_have_no_graph(feta_: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    case = forest_cases.random_case(np.random.default_rng(0), "free")
    save_model(FairPredictor(case.model), "trees.feta")
    code, _, err = feta_("export", "trees.feta", "--fair", "--out", "fair.onnx")
    assert code == 2
    assert "no graph for this model: got Forest; expected a piecewise-linear network; use" in err
    assert not Path("fair.onnx").exists()
