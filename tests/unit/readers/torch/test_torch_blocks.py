"""Blocks of the input: slices, embeddings and joins of torch and its exporters."""

import pytest

pytest.importorskip("torch", reason="torch is not installed")

import logging
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from feta import (
    Argmax,
    Categorical,
    FeatureSpace,
    Integer,
    Model,
    NetworkError,
    Real,
    SchemaError,
    audit,
    read_onnx,
    read_torch,
    runtime_of,
)
from feta.arrays import Matrix
from feta.readers.onnx.runtime import onnx_scores
from feta.scorer.network.embedding import embedded_inputs, expanded, unexpanded

RNG = np.random.default_rng(5)


class Tabular(nn.Module):
    """A typical tabular module: a batch norm for numbers, embeddings for two categories."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(2)
        self.sex = nn.Embedding(2, 2)
        self.town = nn.Embedding(3, 3)
        self.first = nn.Linear(7, 8)
        self.inner = nn.BatchNorm1d(8)
        self.drop = nn.Dropout(0.3)
        self.last = nn.Linear(8, 1)
        for norm in (self.norm, self.inner):
            nn.init.uniform_(norm.weight, 0.5, 2)
            nn.init.normal_(norm.bias)
            norm.running_mean = torch.randn(norm.num_features)
            norm.running_var = torch.rand(norm.num_features) + 0.5

    def forward(self, x: Tensor) -> Tensor:
        numbers = self.norm(x[:, :2])
        parts = [numbers, self.sex(x[:, 2].long()), self.town(x[:, 3].long())]
        hidden = torch.relu(self.inner(self.first(torch.cat(parts, dim=1))))
        return self.last(self.drop(hidden)).squeeze(1)


class Called(nn.Module):
    """A module with functions and operators only."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(5, 3))
        self.bias = nn.Parameter(torch.randn(5))
        self.center = nn.Buffer(torch.tensor([1.0, 2.0, 3.0]))
        self.last = nn.Linear(5, 2)

    def forward(self, x: Tensor) -> Tensor:
        hidden = functional.linear((x - self.center) / 2.0, self.weight, self.bias)
        hidden = functional.leaky_relu(hidden, 0.1).clamp(min=-0.5, max=4)
        return functional.log_softmax(self.last(1.5 * hidden + 1), dim=1)


class TwoTables(nn.Module):
    """A module with two arguments."""

    def __init__(self) -> None:
        super().__init__()
        self.kinds = nn.Embedding(4, 3)
        self.layer = nn.Linear(9, 2)

    def forward(self, numbers: Tensor, kinds: Tensor) -> Tensor:
        looked_up = self.kinds(kinds.long()).flatten(1)
        return self.layer(torch.cat([3 * numbers[:, [2, 0, 1]], looked_up], 1))


def build(kind: Callable[[], nn.Module]) -> nn.Module:
    torch.manual_seed(0)
    return kind().eval()


def inputs(*embedded: int) -> Matrix:
    """Return rows with two numbers, then a number for each embedding."""
    numbers = RNG.normal(size=(60, 2))
    return np.column_stack([numbers, *(RNG.integers(0, size, 60) for size in embedded)])


def scores(module: nn.Module, rows: Matrix) -> Matrix:
    with torch.no_grad():
        return np.asarray(module.double()(torch.from_numpy(rows)).numpy().reshape(len(rows), -1))


def test_slices_embeddings_and_joins_are_read_as_tables() -> None:
    module, rows = build(Tabular), inputs(2, 3)
    network = read_torch(module)
    assert network.width == 4
    assert [(table.column, len(table.numbers)) for table in network.first.tables] == [
        (2, 2),
        (3, 3),
    ]
    np.testing.assert_allclose(network(rows), scores(module, rows), rtol=1e-9)


def test_functions_and_operators_are_read() -> None:
    module, rows = build(Called), RNG.normal(size=(60, 3))
    network = read_torch(module)
    assert not network.sigmoid  # a difference of logarithms is the difference of the scores
    outputs = network(rows)
    expected = scores(module, rows)
    np.testing.assert_allclose(
        outputs[:, 1] - outputs[:, 0], expected[:, 1] - expected[:, 0], rtol=1e-9
    )


def test_two_arguments_are_read_as_adjacent_columns() -> None:
    module = build(TwoTables)
    with pytest.raises(
        NetworkError,
        match=r"takes 2 arguments \('numbers', 'kinds'\), and their numbers of columns are "
        r"unknown; call read_torch\(module, columns=\(…\)\)",
    ):
        read_torch(module)
    network = read_torch(module, columns=(3, 2))
    rows = np.column_stack([RNG.normal(size=(60, 3)), RNG.integers(0, 4, (60, 2))])
    with torch.no_grad():
        expected = module.double()(torch.from_numpy(rows[:, :3]), torch.from_numpy(rows[:, 3:]))
    np.testing.assert_allclose(network(rows), expected.numpy(), rtol=1e-9)


class Skip(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.layer(x)) + x


class Branching(Skip):
    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x) if x.sum() > 0 else x


class Unknown(Skip):
    def forward(self, x: Tensor) -> Tensor:
        return torch.cumsum(self.layer(x), dim=1)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (
            Branching,
            "cannot be traced: got .*; expected one that runs the same steps for every row, "
            "without if or for",
        ),
        (Unknown, r"cumsum\(\) in the forward is not supported; expected Linear, ReLU"),
    ],
)
def test_a_forward_that_is_not_a_chain_is_refused(
    kind: Callable[[], nn.Module], message: str
) -> None:
    with pytest.raises(NetworkError, match=message):
        read_torch(build(kind))


@pytest.mark.filterwarnings("ignore")  # torch's own
@pytest.mark.parametrize("dynamo", [True, False])
def test_exporters_write_embeddings_and_joins_that_are_read(dynamo: bool, tmp_path: Path) -> None:
    logging.disable(logging.WARNING)
    module, rows = build(Tabular), inputs(2, 3)
    path = tmp_path / "model.onnx"
    example = torch.from_numpy(rows.astype(np.float32))
    options = (
        {"dynamic_shapes": ({0: torch.export.Dim("batch")},)}
        if dynamo
        else {"dynamic_axes": {"x": [0]}, "input_names": ["x"]}
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            module, (example,), path, dynamo=dynamo, external_data=dynamo, verbose=False, **options
        )
    logging.disable(logging.NOTSET)
    network = read_onnx(path, external_data=True)
    np.testing.assert_allclose(network(rows), scores(module, rows), rtol=1e-6, atol=1e-6)
    run_session = onnx_scores(path)
    assert run_session is not None
    np.testing.assert_allclose(run_session(rows), network(rows), rtol=1e-4, atol=1e-4)


SPACE = FeatureSpace(
    (
        Real("a", -1, 1),
        Integer("b", 0, 3),
        Categorical("sex", ("f", "m"), sensitive=True),
        Categorical("town", ("A", "B", "C")),
    )
)


def test_a_category_is_embedded_by_its_code() -> None:
    module = build(Tabular)
    network = read_torch(module)
    model = Model(SPACE, network)
    assert model.network.width == SPACE.width == 7
    assert not model.network.first.tables
    people = SPACE.encode([{"a": 0.5, "b": 2, "sex": "m", "town": "B"}])
    assert unexpanded(people, network, SPACE).tolist() == [[0.5, 2.0, 1.0, 1.0]]
    # Products of different shapes: their last bits depend on the processor.
    expected = network(np.array([[0.5, 2.0, 1.0, 1.0]]))
    np.testing.assert_allclose(model.network(people), expected, rtol=1e-12)
    frame = [{"a": 0.5, "b": b, "sex": sex, "town": "C"} for b in range(4) for sex in ("f", "m")]
    result = audit(model, frame, replay=runtime_of(module, model))
    assert all(pair.replayed for pair in result.pairs)
    by_number = FeatureSpace(
        (*SPACE.attributes[:2], Integer("sex", 0, 1, sensitive=True), SPACE.attributes[3])
    )
    assert len(expanded(network, by_number).first.tables) == 1


def test_embeddings_that_do_not_fit_the_space_are_refused_by_name() -> None:
    network = read_torch(build(Tabular))
    assert (
        embedded_inputs(network)
        == "; inputs 2 (2 values), 3 (3 values), counted from 0, are looked up in an "
        "embedding: put the categories there, their values in the order of their indices"
    )
    wrong = FeatureSpace((*SPACE.attributes[:3], Categorical("town", ("A", "B"))))
    with pytest.raises(SchemaError, match="wrong number of network inputs: got 4; expected 6"):
        Model(wrong, network)


def test_a_log_softmax_gives_the_decisions_of_its_scores() -> None:
    module = build(Called)
    space = FeatureSpace(
        (Integer("a", -40, 40, sensitive=True), Real("b", -9, 9), Real("c", -9, 9))
    )
    model = Model(space, read_torch(module), Argmax(("no", "yes")))
    frame = [{"a": 0, "b": float(b), "c": float(c)} for b, c in RNG.uniform(-9, 9, (30, 2))]
    result = audit(model, frame, replay=runtime_of(module, model))
    assert result.pairs
    assert all(pair.replayed for pair in result.pairs)
