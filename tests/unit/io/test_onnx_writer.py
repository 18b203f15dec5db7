from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from feta import (
    Categorical,
    FeatureSpace,
    Integer,
    Model,
    Network,
    NetworkError,
    read_onnx,
    save_model,
)
from feta.io.onnx_writer import write_onnx
from feta.readers.onnx.runtime import onnx_scores
from feta.rule import Tolerance
from feta.scorer.network.activation import Activation, clip, identity, leaky_relu, piecewise
from feta.scorer.network.layers import Affine, Columns, LookupTable
from tests import oracle
from tests.examples import SPACE
from tests.extensions.toys import Square
from tests.strategies import random_case


def exact(space: FeatureSpace, network: Network, people: np.ndarray) -> list[list[Fraction]]:
    model = Model(space, network, Tolerance(0.0))
    return [oracle.scores(model, person) for person in people]


@pytest.mark.parametrize("seed", range(60))
def test_a_written_network_is_read_back_as_the_same_function(tmp_path: Path, seed: int) -> None:
    case = random_case(np.random.default_rng(seed), "free", plain=False)
    path = tmp_path / "model.onnx"
    precision = write_onnx(case.model, path)
    network = read_onnx(path)
    copy = replace(case.model, scorer=network, threshold=None)
    for person in case.people:
        for other in oracle.counterparts(case.model, person):
            assert oracle.scores(copy, other) == oracle.scores(case.model, other)
    assert network.source == precision
    replay = onnx_scores(path)
    if replay is None:
        pytest.skip("onnxruntime is not installed")
    tolerance = 1e-4 if precision == "float32" else 1e-10
    ours = case.model.network(case.people)
    assert np.abs(replay(case.people) - ours).max() <= tolerance * (1 + np.abs(ours).max())


@pytest.mark.parametrize(
    "activation",
    [
        leaky_relu(0.01),
        clip(-0.5, np.inf),
        clip(-np.inf, 0.1),
        clip(0.1, 0.7),
        piecewise("zigzag", [-1, 0.5, 2], [0.25, 0.75, -0.5, 1], [0.5, 1, 1.625, -1.375]),
        Activation(
            "mixed", np.zeros((1, 2)), np.array([[0.0, -1.0], [1.0, 1.0]]), np.zeros((2, 2))
        ),
        identity(),
    ],
    ids=lambda activation: activation.name,
)
def test_every_activation_keeps_its_exact_scores(tmp_path: Path, activation: Activation) -> None:
    rng = np.random.default_rng(1)
    network = Network.from_layers(
        [
            (rng.normal(size=(2, 4)) / [50, 1, 1, 50], rng.normal(size=2)),
            (rng.normal(size=(1, 2)), [0.1]),
        ],
        activation=activation,
    )
    path = tmp_path / "model.onnx"
    assert write_onnx(network, path) == "float64"
    people = SPACE.encode(
        [{"age": a, "sex": "male", "income": i} for a in (18, 40) for i in (0, 70)]
    )
    assert exact(SPACE, read_onnx(path), people) == exact(SPACE, network, people)


def test_a_layer_that_only_scales_is_not_folded_into_the_next(tmp_path: Path) -> None:
    space = FeatureSpace((Categorical("sex", ("f", "m"), sensitive=True), Integer("age", 0, 9)))
    scaling = Columns(np.array([0.1, 0.2, 0.3]), np.diag([0.1, 0.7, 0.3]))
    network = Network(scaling, (identity(),), (Affine(np.array([[0.1, 0.3, 0.7]]), np.zeros(1)),))
    path = tmp_path / "model.onnx"
    write_onnx(network, path)
    people = space.encode([{"sex": "f", "age": 7}, {"sex": "m", "age": 3}])
    assert exact(space, read_onnx(path), people) == exact(space, network, people)


def test_a_table_of_uneven_numbers_is_written_exactly(tmp_path: Path) -> None:
    table = LookupTable(
        3, np.array([0.0, 0.1, 0.3, 70.0]), np.array([[0.1], [-0.2], [0.7], [1e-9]])
    )
    network = Network(
        Columns(np.array([0.3]), np.array([[0.01, 0.5, -0.5, 0.0]]), (table,)), (), ()
    )
    path = tmp_path / "model.onnx"
    write_onnx(network, path)
    people = SPACE.encode([{"age": 30, "sex": "male", "income": i} for i in (0, 0.1, 0.3, 70)])
    assert exact(SPACE, read_onnx(path), people) == exact(SPACE, network, people)


def test_a_last_sigmoid_is_written_and_removed_when_read(tmp_path: Path) -> None:
    network = replace(Network.from_layers([([[0.5, 1.0]], [0.25])]), sigmoid=True)
    write_onnx(network, tmp_path / "model.onnx")
    copy = read_onnx(tmp_path / "model.onnx")
    assert copy.sigmoid
    assert copy.fingerprint == network.fingerprint


def test_float32_can_be_requested_and_is_rejected_if_it_overflows(tmp_path: Path) -> None:
    network = Network.from_layers([([[0.1]], [0.0])])
    assert write_onnx(network, tmp_path / "model.onnx") == "float64"
    write_onnx(network, tmp_path / "model.onnx", precision="float32")
    assert read_onnx(tmp_path / "model.onnx").first.slopes[0, 0] == np.float32(0.1)
    with pytest.raises(NetworkError, match="the weights exceed float32"):
        write_onnx(
            Network.from_layers([([[1e39]], [0.0])]), tmp_path / "big.onnx", precision="float32"
        )
    assert not (tmp_path / "big.onnx").exists()
    with pytest.raises(
        NetworkError, match="invalid precision: got 'half'; expected one of 'float32', 'float64'"
    ):
        write_onnx(network, tmp_path / "model.onnx", precision="half")  # type: ignore[arg-type]  # wrong on purpose


def test_only_a_network_can_be_written(tmp_path: Path) -> None:
    space = FeatureSpace((Integer("age", 18, 60, sensitive=True),))
    model = Model(space, Square((1.0,), 4.0))
    message = "^invalid scorer: got Square; expected a Network$"
    with pytest.raises(NetworkError, match=message):
        write_onnx(model, tmp_path / "model.onnx")
    with pytest.raises(NetworkError, match=message):
        save_model(model, tmp_path / "model.feta")
    assert not any(tmp_path.iterdir())
