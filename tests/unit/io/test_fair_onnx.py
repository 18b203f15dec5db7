"""The fair decision as an ONNX graph: where it is sure, it is right."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from feta import (
    Argmax,
    Categorical,
    FairPredictor,
    FeatureSpace,
    Integer,
    Model,
    Network,
    Real,
    Threshold,
    Tolerance,
    VoteWeights,
)
from feta.errors import FetaError
from feta.io.fair_onnx.graph import Graph, Precision
from feta.io.fair_onnx.people import SharedColumns
from feta.io.fair_onnx.scores import counterpart_scores
from feta.io.fair_onnx.write import write_fair_onnx
from feta.scorer.protocol import Side
from feta.vote.mean_decision import VoteName
from tests import oracle, strategies

onnxruntime = pytest.importorskip("onnxruntime")

SPACE = FeatureSpace(
    (
        Integer("age", 18, 30, sensitive=True),
        Categorical("sex", ("female", "male"), sensitive=True),
        Real("income", 0, 100),
        Integer("children", 0, 5),
        Categorical("town", ("a", "b", "c")),
    )
)
PRECISIONS: tuple[Precision, ...] = ("float32", "float64")


def run(
    predictor: FairPredictor, people: np.ndarray, path: Path, precision: Precision
) -> tuple[Any, Any]:
    columns = write_fair_onnx(predictor, path, precision=precision).columns
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return tuple(
        session.run(["decision", "sure"], {"people": people[:, columns].astype(precision)})
    )


def random_model(rng: np.random.Generator, outputs: int = 1) -> Model:
    layers = [
        (rng.normal(size=(8, SPACE.width)) / [20, 1, 1, 50, 3, 1, 1, 1], rng.normal(size=8)),
        (rng.normal(size=(6, 8)), rng.normal(size=6)),
        (rng.normal(size=(outputs, 6)), rng.normal(size=outputs)),
    ]
    network = Network.from_layers(layers)
    if outputs > 1:
        return Model(SPACE, network, Argmax(tuple("abcd"[:outputs])))
    return Model(SPACE, network.with_link("logit"), Threshold(0.25))


def random_people(rng: np.random.Generator, n_people: int) -> np.ndarray:
    records = [
        {
            "age": int(rng.integers(18, 31)),
            "sex": str(rng.choice(["female", "male"])),
            "income": float(rng.uniform(0, 100)),
            "children": int(rng.integers(0, 6)),
            "town": str(rng.choice(["a", "b", "c"])),
        }
        for _ in range(n_people)
    ]
    return SPACE.encode(records)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("edge", ["free", "tie", "ulp"])
def test_a_sure_majority_is_the_one_of_the_oracle(
    tmp_path: Path, precision: Precision, edge: strategies.Edge
) -> None:
    n_sure = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        case = strategies.random_case(rng, edge, plain=seed % 3 > 0)
        predictor = FairPredictor(case.model, weights=case.weights)
        if isinstance(case.model.rule, Tolerance) or type(case.model.rule).__name__ == "OneVsRest":
            continue
        decisions, sure = run(predictor, case.people, tmp_path / "fair.onnx", precision)
        for person in np.flatnonzero(sure):
            truth = oracle.fair_decision(case.model, case.people[person], case.weights)
            assert int(decisions[person]) == truth, seed
        n_sure += int(sure.sum())
    assert n_sure > 20  # most people are decided, also near ties


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("vote", ["mean_score", "mean_probability"])
def test_a_sure_mean_is_the_one_of_the_predictor(
    tmp_path: Path, precision: Precision, vote: VoteName
) -> None:
    rng = np.random.default_rng(3)
    sides: tuple[Side, ...] = ("above", "below")
    for favors in sides:
        model = Model(SPACE, random_model(rng).network, Threshold(0.25, favors))
        predictor = FairPredictor.fitted(model, random_people(rng, 60), vote, least=1)
        people = random_people(rng, 300)
        decisions, sure = run(predictor, people, tmp_path / "fair.onnx", precision)
        assert sure.mean() > 0.9
        assert (decisions == predictor.decide(people))[sure].all()


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("vote", ["mean_score", "mean_probability"])
def test_a_mean_on_its_level_is_never_decided_wrongly(
    tmp_path: Path, precision: Precision, vote: VoteName
) -> None:
    rng = np.random.default_rng(5)
    model, people = random_model(rng), random_people(rng, 12)
    fitted = FairPredictor.fitted(model, people, vote, least=1)
    sums = fitted.means(people)
    for person in range(len(people)):
        mean = float(sums.means[person])
        for level in (np.nextafter(mean, -np.inf), mean, np.nextafter(mean, np.inf)):
            predictor = replace(fitted, level=float(level))
            decisions, sure = run(predictor, people, tmp_path / "fair.onnx", precision)
            assert (decisions == predictor.decide(people))[sure].all()


@pytest.mark.parametrize("precision", PRECISIONS)
def test_several_classes_count_the_votes_of_each(tmp_path: Path, precision: Precision) -> None:
    rng = np.random.default_rng(7)
    model, people = random_model(rng, outputs=4), random_people(rng, 300)
    votes = VoteWeights.from_people(SPACE, people)
    for predictor in (FairPredictor(model), FairPredictor(model, weights=votes)):
        decisions, sure = run(predictor, people, tmp_path / "fair.onnx", precision)
        assert sure.mean() > 0.9
        assert (decisions == predictor.decide(people))[sure].all()
        assert len(set(decisions[sure].tolist())) > 1


@pytest.mark.parametrize(
    ("column", "number"),
    [("income", np.nan), ("income", np.inf), ("income", 101.0), ("income", -1.0),
     ("children", 2.5), ("children", 6.0), ("town", 1.0), ("town", 0.5)],
)  # fmt: skip
@pytest.mark.parametrize("precision", PRECISIONS)
def test_rows_that_are_no_people_are_never_sure(
    tmp_path: Path, column: str, number: float, precision: Precision
) -> None:
    model = random_model(np.random.default_rng(1))
    people = random_people(np.random.default_rng(2), 1)
    start = SPACE.columns_of(SPACE.attribute(column)).start
    broken = np.repeat(people, 4, axis=0)
    broken[1:, start : start + (3 if column == "town" else 1)] = number
    broken[2:, 0] = 0  # sensitive columns are no input
    _, sure = run(FairPredictor(model), broken, tmp_path / "fair.onnx", precision)
    assert sure.tolist() == [True, False, False, False]


def test_a_float32_graph_also_holds_for_numbers_that_are_rounded(tmp_path: Path) -> None:
    """The score of an income of 0.1 is on the threshold; its float32 is above."""
    layers = [([[0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0]], [0.0])]
    person = SPACE.encode({"age": 20, "sex": "male", "income": 0.1, "children": 0, "town": "a"})
    for threshold in (0.1, float(np.nextafter(0.1, 1)), float(np.float32(0.1))):
        model = Model(SPACE, Network.from_layers(layers), threshold=threshold)
        sure = run(FairPredictor(model), person, tmp_path / "fair.onnx", "float32")[1]
        assert not sure[0]


@pytest.mark.parametrize(
    ("predictor", "expected"),
    [
        (
            FairPredictor(
                Model(SPACE, random_model(np.random.default_rng(0)).network, Tolerance(1.0))
            ),
            r"no graph for this rule: got Tolerance; expected Threshold or Argmax; use feta serve",
        ),
        (
            FairPredictor(random_model(np.random.default_rng(0), outputs=3), vote="mean_score"),
            r"no graph for a mean of several classes or of a regression: got one; expected two",
        ),
        (
            FairPredictor(
                Model(
                    FeatureSpace((Integer("age", 0, 10_000, sensitive=True), Real("x", 0, 1))),
                    Network.from_layers([([[1.0, 1.0]], [0.0])]),
                    threshold=0.0,
                )
            ),
            r"too many counterparts for a graph: got 10,001 per person; expected at most 10,000; "
            r"use feta serve",
        ),
        (
            FairPredictor(
                Model(
                    FeatureSpace((Real("age", 0, 1, sensitive=True), Real("x", 0, 1))),
                    Network.from_layers([([[1.0, 1.0]], [0.0])]),
                    threshold=0.0,
                )
            ),
            r"no graph for this relation: got AllSensitiveValues; expected finitely many",
        ),
    ],
)
def test_what_has_no_graph_is_refused_by_name(
    tmp_path: Path, predictor: FairPredictor, expected: str
) -> None:
    with pytest.raises(FetaError, match=f"^{expected}"):
        write_fair_onnx(predictor, tmp_path / "fair.onnx")
    assert not list(tmp_path.iterdir())


def test_numbers_that_float32_does_not_hold_are_refused(tmp_path: Path) -> None:
    layers = [([[0.0, 0.0, 0.0, 1e39, 0.0, 0.0, 0.0, 0.0]], [0.0])]
    predictor = FairPredictor(Model(SPACE, Network.from_layers(layers), threshold=0.0))
    with pytest.raises(
        FetaError, match=r"^float32 could overflow: got values up to 1e\+41; expect"
    ):
        write_fair_onnx(predictor, tmp_path / "fair.onnx", precision="float32")
    assert len(write_fair_onnx(predictor, tmp_path / "fair.onnx").names) == 5


def test_an_unknown_precision_is_refused(tmp_path: Path) -> None:
    predictor = FairPredictor(random_model(np.random.default_rng(0)))
    with pytest.raises(FetaError, match=r"^invalid precision: got 'half'; expected one of"):
        write_fair_onnx(predictor, tmp_path / "fair.onnx", precision="half")  # type: ignore[arg-type]  # checked


@pytest.mark.parametrize(("precision", "widest"), [("float32", 1e-3), ("float64", 1e-11)])
def test_the_bound_of_a_graph_covers_the_rounding_of_its_scores(
    precision: Precision, widest: float
) -> None:
    """Compare scores in the graph with exact ones; the bound is not needlessly wide."""
    rng = np.random.default_rng(11)
    model, people = random_model(rng), random_people(rng, 5)
    columns, graph = SharedColumns.of(SPACE), Graph(precision)
    ids = np.arange(SPACE.lattice.size)
    scores = counterpart_scores(graph, model.network, model.relation, columns=columns, ids=ids)
    proto = graph.model({}, width=len(columns.names), classes=False)
    for name in (scores.values, scores.errors):
        proto.graph.output.add().name = name
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    inputs = {"people": people[:, columns.columns].astype(precision)}
    values, errors = session.run([scores.values, scores.errors], inputs)
    for person in range(len(people)):
        others = oracle.counterparts(model, people[person])
        gaps = [
            abs(oracle.score(model, other) - Fraction(float(value)))
            for other, value in zip(others, values[person, :, 0], strict=True)
        ]
        assert 0 < max(gaps) <= float(errors[person, 0]) < widest
