"""Fair decisions as an ONNX graph where runtimes, numbers and rows are unusual."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import ArrayLike
from onnx import numpy_helper

from feta import (
    Argmax,
    Categorical,
    Derived,
    FairPredictor,
    FeatureSpace,
    Integer,
    Levels,
    Model,
    Network,
    Real,
    Threshold,
    VoteWeights,
)
from feta.arrays import Matrix
from feta.errors import FetaError
from feta.io.fair_onnx.graph import Graph, Precision
from feta.io.fair_onnx.scores import GraphScores
from feta.io.fair_onnx.votes import decide
from feta.io.fair_onnx.write import write_fair_onnx
from feta.scorer.network.activation import Activation, clip, piecewise, prelu
from feta.vote.cutoff import CutOff
from feta.vote.graded_ballot import UNIT, GradedBallot
from feta.vote.mean_decision import MeanDecision
from feta.vote.score_mean import ScoreMean
from feta.vote.totals import MeanVote

onnxruntime = pytest.importorskip("onnxruntime")

AGE = Integer("age", 18, 20, sensitive=True)
SPACE = FeatureSpace((AGE, Real("income", 0, 100)))
PRECISIONS: tuple[Precision, ...] = ("float32", "float64")
ODD_BALLOT = GradedBallot(np.array([-1.0, 0.0, 1.0, 2.0]), np.linspace(0, UNIT, 5).astype(int))


def session(content: bytes, *, optimized: bool = True) -> Any:  # noqa: ANN401 - untyped
    levels, options = onnxruntime.GraphOptimizationLevel, onnxruntime.SessionOptions()
    if not optimized:
        options.graph_optimization_level = levels.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def run(
    predictor: FairPredictor,
    people: ArrayLike,
    path: Path,
    precision: Precision,
    *,
    optimized: bool = True,
) -> tuple[list[Any], list[bool]]:
    columns = write_fair_onnx(predictor, path, precision=precision).columns
    rows = np.asarray(people, dtype=np.float64)[:, columns].astype(precision)
    outputs = session(path.read_bytes(), optimized=optimized).run(None, {"people": rows})
    return outputs[0].tolist(), outputs[1].tolist()


def linear(space: FeatureSpace, *weights: float, bias: float = 0.0) -> Network:
    return Network.from_layers([([list(weights)], [bias])]).over(space)


def one_neuron(activation: Activation) -> Network:
    return Network.from_layers([([[0.0, -1.0]], [0.0]), ([[1.0]], [0.0])], activation=activation)


def predictors() -> list[FairPredictor]:
    """Return every vote, with one neuron, output or counterpart where there may be one."""
    bent = one_neuron(prelu([1 + 1e-9])).with_link("logit")
    model = Model(SPACE, bent, Threshold(0.5))
    weights = VoteWeights.from_people(SPACE, np.array([[18.0, 1.0]]))
    classes = Network.from_layers([([[0.1, 1.0], [0.2, 0.5], [0.0, 0.7]], [-50.0, 0.0, 0.0])])
    clipped = one_neuron(clip(2.0**-155, 1.0))
    several = Model(SPACE, classes, Argmax(("a", "b", "c")))
    return [
        FairPredictor(model),
        FairPredictor(model, weights=weights),
        FairPredictor(model, vote="mean_score"),
        FairPredictor(model, weights=weights, vote="mean_score"),
        FairPredictor(model, vote="mean_probability"),
        FairPredictor(model, vote="mean_probability", ballot=ODD_BALLOT),
        FairPredictor(Model(SPACE, clipped, Threshold(1e-46))),
        FairPredictor(several),
        FairPredictor(several, weights=weights),
    ]


@pytest.mark.parametrize("precision", PRECISIONS)
def test_no_operator_has_an_operand_that_a_runtime_takes_for_nothing(
    tmp_path: Path, precision: Precision
) -> None:
    """onnxruntime removes sums with 0 and products with 1, after it rounds these to float32."""
    for predictor in predictors():
        write_fair_onnx(predictor, tmp_path / "fair.onnx", precision=precision)
        graph = onnx.load(tmp_path / "fair.onnx").graph
        stored = {array.name: numpy_helper.to_array(array) for array in graph.initializer}
        nodes = [node for node in graph.node if node.op_type in {"Add", "Sub", "Mul", "Div"}]
        operands = [
            stored[name]
            for node in nodes
            for name in node.input
            if name in stored and not stored.keys() >= set(node.input)
        ]
        assert all(a.dtype.kind == "i" or a.size > 1 for a in operands)
        assert all(a.all() for a in operands if a.dtype.kind == "i")


@pytest.mark.parametrize("optimized", [True, False])
@pytest.mark.parametrize("slope", [1 + 1e-9, 1 - 1e-9, float(np.nextafter(1, 2))])
@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_slope_near_1_is_kept(
    tmp_path: Path, precision: Precision, slope: float, *, optimized: bool
) -> None:
    for network in (
        one_neuron(prelu([slope])),
        Network.from_layers(
            [([[0.0, -1.0], [0.0, 0.5]], [0.0, 0.0]), ([[1.0, 0.0]], [0.0])],
            activation=piecewise("steep", [0], [slope, 0.5], [0, 0]),
        ),
    ):
        predictor = FairPredictor(Model(SPACE, network, Threshold(-50.0 * (1 + slope))))
        decision, sure = run(
            predictor, [[18, 100.0]], tmp_path / "f.onnx", precision, optimized=optimized
        )
        assert sure == [precision == "float64" and abs(slope - 1) > 1e-10]
        assert not sure[0] or decision == [slope < 1]
        assert predictor.decide(np.array([[18, 100.0]])).tolist() == [slope < 1]


@pytest.mark.parametrize("slope", [1e-40, 3e-42, 1.3e-45])
def test_a_slope_that_is_subnormal_in_float32_is_not_sure(tmp_path: Path, slope: float) -> None:
    """Such a slope has few digits; the threshold is between the score and that of its float32."""
    space = FeatureSpace((AGE, Real("x", 0, 2e20)))
    tiny = piecewise("tiny", [0], [0, slope], [0, 0])
    layers = [([[0.0, 1.0]], [0.0]), ([[1e25]], [0.0])]
    network = Network.from_layers(layers, activation=tiny)
    number = float(np.float32(1e20))
    middle = (slope + float(np.float32(slope))) / 2 * number * 1e25
    predictor = FairPredictor(Model(space, network, Threshold(middle)))
    for optimized in (True, False):
        _, sure = run(
            predictor, [[18, number]], tmp_path / "f.onnx", "float32", optimized=optimized
        )
        assert sure == [False]


def test_a_step_that_could_overflow_inside_is_refused(tmp_path: Path) -> None:
    """The values before the activation are small, and so are those of the next layer."""
    steep = piecewise("steep", [0], [1, 1e38], [0, 0])
    layers = [([[0.0, 1.0], [0.0, 1.0]], [0.0, 0.0]), ([[2e-36, -1e-36]], [0.0])]
    network = Network.from_layers(layers, activation=steep)
    predictor = FairPredictor(Model(SPACE, network, Threshold(0.0)))
    with pytest.raises(FetaError, match=r"^float32 could overflow: got values up to 1e\+40; exp"):
        write_fair_onnx(predictor, tmp_path / "fair.onnx", precision="float32")
    assert run(predictor, [[18, 100.0]], tmp_path / "f.onnx", "float64") == ([True], [True])


def decided(values: list[float], votes: list[int], vote: MeanVote) -> bool:
    """Return whether scores without errors, of one person, decide a mean."""
    graph = Graph("float64")
    scores = GraphScores(
        graph.store(np.array(values)[None, :, None]), graph.store(np.zeros((1, 1))), ()
    )
    mean = MeanDecision(vote, CutOff(0.5))
    model = Model(SPACE, linear(SPACE, 1.0, 1.0), Threshold(0.0))
    outcome = decide(graph, scores, model, votes=np.array(votes), mean=mean)
    proto = graph.model(
        {"decision": outcome.decision, "sure": outcome.sure}, width=1, classes=False
    )
    return bool(session(proto.SerializeToString()).run(["sure"], {"people": np.zeros((1, 1))})[0])


def test_scores_that_are_no_numbers_decide_nothing() -> None:
    for vote in (ODD_BALLOT, ScoreMean()):
        assert decided([-5.0, -6.0], [1, 1], vote)
        assert not decided([np.nan, np.nan], [1, 1], vote)
        assert not decided([-5.0, np.nan], [1, 1], vote)


def test_sums_that_may_overflow_decide_nothing() -> None:
    assert decided([1e307, 1e307], [1, 1], ScoreMean())
    assert not decided([1e307, 1e307], [6, 6], ScoreMean())


def test_too_many_votes_are_refused() -> None:
    with pytest.raises(FetaError, match=r"^too many votes for a graph: got 4503599627370496 per"):
        decided([0.0], [2**52], ScoreMean())


GAPS = FeatureSpace((AGE, Real("income", 10, 100, missing=True)))
SHORT = FeatureSpace((AGE, Real("income", 0.1, 0.7, missing=True)))
LEVELS = FeatureSpace((AGE, Levels("rate", (0.1, 0.2, 0.5), missing=True)))
BANDS = FeatureSpace(
    (
        AGE,
        Real("income", 0, 100),
        Derived("band", "income", (("low", 0, 50), ("high", 50.0000001, 100))),
    )
)
LISTED_BANDS = FeatureSpace(
    (
        AGE,
        Levels("rate", (0.1, 0.2, 0.7)),
        Derived("band", "rate", (("low", 0, 0.2), ("high", 0.7, 0.7))),
    )
)
TEXTS = FeatureSpace((AGE, Categorical("town", ("a", "b"), missing=True)))


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize(
    ("space", "people", "others"),
    [
        (GAPS, [[10, 0], [10, 1], [100, 0]], [[50, 1], [100, 1], [10, 0.5], [10, 2], [9, 0]]),
        (SHORT, [[0.5, 0], [0.1, 1]], [[0.7, 1], [0.5, 1], [0.09, 0], [0.71, 0], [np.nan, 1]]),
        (
            LEVELS,
            [[0.1, 0], [0.2, 0], [0.5, 0], [0.1, 1]],
            [[0.3, 0], [0.2, 1], [0.6, 0], [0.0, 0], [0.1, -1], [np.nan, 0], [np.inf, 0]],
        ),
        (
            BANDS,
            [[10, 1, 0], [50, 1, 0], [60, 0, 1]],
            [[10, 0, 1], [50, 0, 1], [60, 1, 0], [50.00000005, 0, 1], [10, 1, 1], [10, 0, 0]],
        ),
        (
            LISTED_BANDS,
            [[0.1, 1, 0], [0.2, 1, 0], [0.7, 0, 1]],
            [[0.1, 0, 1], [0.7, 1, 0], [0.3, 1, 0], [0.2, 0, 0], [0.2, 1, 1]],
        ),
        (TEXTS, [[1, 0, 0], [0, 0, 1]], [[1, 1, 0], [0, 0, 0], [0.5, 0.5, 0], [2, -1, 0]]),
    ],
)
def test_only_people_of_the_space_are_sure(
    tmp_path: Path,
    precision: Precision,
    space: FeatureSpace,
    people: list[list[float]],
    others: list[list[float]],
) -> None:
    """Float64 rows are people as `contains` defines them; rounded numbers stay people."""
    network = linear(space, *[0.0] + [1.0] * (space.width - 1))
    predictor = FairPredictor(Model(space, network, Threshold(-1000.0)))
    rows = np.array([[18.0, *row] for row in [*people, *others]])
    expected = [space.contains(row) for row in rows]
    assert expected == [True] * len(people) + [False] * len(others)
    assert run(predictor, rows, tmp_path / "fair.onnx", precision)[1] == expected


@pytest.mark.parametrize("strict", [True, False])
def test_a_number_that_rounding_moves_outside_its_limits_is_not_sure(
    tmp_path: Path, *, strict: bool
) -> None:
    space = FeatureSpace((AGE, Real("income", 0, 0.1, strict=strict)))
    predictor = FairPredictor(Model(space, linear(space, 0.0, 1.0), Threshold(-1.0)))
    below = float(np.nextafter(np.float32(0.1), np.float32(0)))
    assert float(np.float32(0.1)) > 0.1
    sure = run(predictor, [[18, 0.1], [18, below]], tmp_path / "fair.onnx", "float32")[1]
    assert sure == [False, True]
    sure = run(predictor, [[18, 0.1], [18, below]], tmp_path / "fair.onnx", "float64")[1]
    assert sure == [True, True]


@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_bad_row_changes_nothing_for_the_other_rows(tmp_path: Path, precision: Precision) -> None:
    bad = [np.inf, -np.inf, np.nan, 1e37, 101.0, -1e-30]
    rows = np.array([[18.0, number] for number in [40.0, *bad, 60.0]])
    for predictor in predictors():
        decision, sure = run(predictor, rows, tmp_path / "fair.onnx", precision)
        alone = [run(predictor, rows[[row]], tmp_path / "fair.onnx", precision) for row in (0, -1)]
        assert [sure[:1], sure[-1:]] == [part[1] for part in alone]
        assert sure[1:-1] == [False] * len(bad)
        truth = predictor.decide(rows[[0, -1]]).tolist()
        assert all(not sure[row] or decision[row] == truth[row] for row in (0, -1))


@pytest.mark.parametrize("precision", PRECISIONS)
def test_no_rows_have_no_decisions(tmp_path: Path, precision: Precision) -> None:
    none: Matrix = np.zeros((0, 2))
    for predictor in predictors():
        assert run(predictor, none, tmp_path / "fair.onnx", precision) == ([], [])


@pytest.mark.parametrize(
    ("space", "precision", "expected"),
    [
        (FeatureSpace((AGE,)), "float64", r"no graph for a space without shared columns: got sens"),
        (
            FeatureSpace((AGE, Levels("rate", tuple(range(10_001))))),
            "float64",
            r"too many levels of 'rate' for a graph: got 10,001; expected at most 10,000; declare",
        ),
        (
            FeatureSpace((AGE, Levels("rate", (1.0, 1.00000001)))),
            "float32",
            r"float32 does not distinguish the levels of 'rate'; write the graph in float64",
        ),
    ],
)
def test_spaces_without_a_graph_are_refused_by_name(
    tmp_path: Path, space: FeatureSpace, precision: Precision, expected: str
) -> None:
    network = linear(space, *[1.0] * space.width)
    with pytest.raises(FetaError, match=f"^{expected}"):
        write_fair_onnx(
            FairPredictor(Model(space, network, Threshold(0.0))),
            tmp_path / "f",
            precision=precision,
        )
