"""Blocks of the input: slices, embeddings and joins of torch and its exporters."""

import pytest

pytest.importorskip("torch", reason="torch is not installed")

import logging
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
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
Array = NDArray[Any]
Kinds = Mapping[str, tuple[int, int]]
Option = Any  # of an operator


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


def made(kind: Callable[[], nn.Module]) -> nn.Module:
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
    module, rows = made(Tabular), inputs(2, 3)
    network = read_torch(module)
    assert network.width == 4
    assert [(table.column, len(table.numbers)) for table in network.first.tables] == [
        (2, 2),
        (3, 3),
    ]
    np.testing.assert_allclose(network(rows), scores(module, rows), rtol=1e-9)


def test_functions_and_operators_are_read() -> None:
    module, rows = made(Called), RNG.normal(size=(60, 3))
    network = read_torch(module)
    assert not network.sigmoid  # a difference of logarithms is the difference of the scores
    outputs = network(rows)
    expected = scores(module, rows)
    np.testing.assert_allclose(
        outputs[:, 1] - outputs[:, 0], expected[:, 1] - expected[:, 0], rtol=1e-9
    )


def test_two_arguments_are_read_as_adjacent_columns() -> None:
    module = made(TwoTables)
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


class Joined(Skip):
    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([torch.relu(self.layer(x)), x], dim=1)


class Branching(Skip):
    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x) if x.sum() > 0 else x


class Smooth(Skip):
    def forward(self, x: Tensor) -> Tensor:
        return self.layer(torch.sigmoid(self.layer(x)))


class Unknown(Skip):
    def forward(self, x: Tensor) -> Tensor:
        return torch.cumsum(self.layer(x), dim=1)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (
            Skip,
            r"add\(\) in the forward does not .*branches and skip connections are not supported",
        ),
        (
            Joined,
            r"cat\(\) in the forward joins outputs of a layer; expected blocks of the input; "
            r"branches and skip connections are not",
        ),
        (
            Branching,
            "cannot be traced: got .*; expected one that runs the same steps for every row, "
            "without if or for",
        ),
        (
            Smooth,
            r"sigmoid\(\) in the forward is not piecewise-linear, so no exact answer exists; "
            r"retrain with 'hardsigmoid'",
        ),
        (Unknown, r"cumsum\(\) in the forward is not supported; expected Linear, ReLU"),
    ],
)
def test_a_forward_that_is_not_a_chain_is_refused(
    kind: Callable[[], nn.Module], message: str
) -> None:
    with pytest.raises(NetworkError, match=message):
        read_torch(made(kind))


@pytest.mark.filterwarnings("ignore")  # torch's own
@pytest.mark.parametrize("dynamo", [True, False])
def test_exporters_write_embeddings_and_joins_that_are_read(dynamo: bool, tmp_path: Path) -> None:
    logging.disable(logging.WARNING)
    module, rows = made(Tabular), inputs(2, 3)
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


def graph(nodes: list[onnx.NodeProto], arrays: dict[str, Array], kinds: Kinds) -> onnx.ModelProto:
    """Return a graph whose inputs have these types and widths."""
    entries = [
        helper.make_tensor_value_info(name, kind, ["n", width])
        for name, (kind, width) in kinds.items()
    ]
    end = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    stored = [numpy_helper.from_array(array, name) for name, array in arrays.items()]
    opset = [helper.make_opsetid("", 17)]
    return helper.make_model(
        helper.make_graph(nodes, "g", entries, [end], stored), opset_imports=opset, ir_version=8
    )


def node(kind: str, inputs: list[str], outputs: list[str], **options: Option) -> onnx.NodeProto:
    return helper.make_node(kind, inputs, outputs, **options)


W = RNG.normal(size=(5, 2)).astype(np.float32)
TABLE = RNG.normal(size=(3, 2)).astype(np.float32)
FOUR = RNG.normal(size=(1, 4)).astype(np.float32)


def whole(*numbers: int) -> Array:
    return np.array(numbers, dtype=np.int64)


BLOCKS = [
    node("Slice", ["x", "start", "end", "axes"], ["a"]),
    node("Split", ["x", "sizes"], ["b", "c", "rest"], axis=1),
    node("Gather", ["x", "picked"], ["d"], axis=1),
    node("Sub", ["d", "one"], ["e"]),
    node("Gather", ["table", "kind"], ["f"]),
    node("Squeeze", ["f", "axis"], ["g"]),
    node("Concat", ["a", "e", "g"], ["j"], axis=-1),
    node("MatMul", ["j", "W"], ["y"]),
]
ARRAYS: dict[str, Array] = {
    "start": whole(1),
    "end": whole(2),
    "axes": whole(1),
    "sizes": whole(1, 1, 2),
    "picked": whole(3, 0),
    "one": np.array([1.0, 0.5], dtype=np.float32),
    "axis": whole(1),
    "table": TABLE,
    "W": W,
}


def test_blocks_of_several_inputs_are_read_and_replayed(tmp_path: Path) -> None:
    model = graph(BLOCKS, ARRAYS, {"x": (TensorProto.FLOAT, 4), "kind": (TensorProto.INT64, 1)})
    onnx.save(model, tmp_path / "model.onnx")
    network = read_onnx(tmp_path / "model.onnx")
    rows = np.column_stack([RNG.normal(size=(40, 4)), RNG.integers(0, 3, 40)])
    parts = [rows[:, 1:2], rows[:, [3, 0]] - [1.0, 0.5], TABLE[rows[:, 4].astype(int)]]
    np.testing.assert_allclose(network(rows), np.hstack(parts) @ W, rtol=1e-6)
    assert network.first.tables[0].column == 4
    run_session = onnx_scores(tmp_path / "model.onnx")
    assert run_session is not None
    np.testing.assert_allclose(run_session(rows), network(rows), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {6: node("Concat", ["a", "e", "g"], ["j"], axis=0)},
            r"\(Concat\) joins the wrong axis: got axis 0; expected columns \(axis 1\)",
        ),
        (
            {2: node("Gather", ["x", "kind"], ["d"], axis=1)},
            "does not select columns .axis 1. by stored indices",
        ),
        (
            {1: node("Split", ["x", "axes"], ["b", "c", "rest"], axis=1)},
            r"has invalid sizes: got \[1\]; expected 3 sizes of 4 columns",
        ),
        (
            {0: node("Slice", ["x", "start", "end", "one_"], ["a"])},
            r"selects along the wrong axis: got axis 0; expected columns \(axis 1\)",
        ),
        (
            {0: node("Slice", ["x", "start", "end", "axes", "one_"], ["a"])},
            "has invalid limits: got .*; expected one start, one end and one step other than 0 "
            "per axis",
        ),
        (
            {0: node("Slice", ["x", "start", "sizes", "axes"], ["a"])},
            "has invalid limits: got .*; expected one start, one end and one step other than 0 "
            "per axis",
        ),
        (
            {3: node("Mul", ["d", "a"], ["e"])},
            "does not combine a part of the input with a constant",
        ),
        ({7: node("MatMul", ["kind", "W"], ["y"])}, "expected float or double numbers"),
        ({7: node("Relu", ["j"], ["y"])}, "invalid position of .*; expected an affine layer"),
    ],
)
def test_blocks_with_another_meaning_are_refused(
    change: dict[int, onnx.NodeProto], message: str, tmp_path: Path
) -> None:
    nodes = [change.get(index, block) for index, block in enumerate(BLOCKS)]
    kinds = {"x": (TensorProto.FLOAT, 4), "kind": (TensorProto.INT64, 1)}
    onnx.save(graph(nodes, ARRAYS | {"one_": whole(0)}, kinds), tmp_path / "model.onnx")
    if 7 in change and change[7].op_type == "Relu":
        assert read_onnx(tmp_path / "model.onnx").outputs == 5  # blocks are then a separate layer
        return
    with pytest.raises(NetworkError, match=message):
        read_onnx(tmp_path / "model.onnx")


def test_a_graph_with_other_scores_than_the_network_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = graph([node("MatMul", ["x", "W"], ["y"])], {"W": W}, {"x": (TensorProto.FLOAT, 5)})
    onnx.save(model, tmp_path / "model.onnx")
    monkeypatch.setattr(
        "feta.readers.onnx.check._convert_to_double", lambda model, _: _doubled(model)
    )
    with pytest.raises(
        NetworkError,
        match=r"FETA's scores differ from the graph's own by .* in row \d+, output \d; "
        r".*please report",
    ):
        read_onnx(tmp_path / "model.onnx")


def _doubled(model: onnx.ModelProto) -> onnx.ModelProto:
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(2.0 * W.astype(np.float64), "W"))
    return model


SPACE = FeatureSpace(
    (
        Real("a", -1, 1),
        Integer("b", 0, 3),
        Categorical("sex", ("f", "m"), sensitive=True),
        Categorical("town", ("A", "B", "C")),
    )
)


def test_a_category_is_embedded_by_its_code() -> None:
    module = made(Tabular)
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
    network = read_torch(made(Tabular))
    assert (
        embedded_inputs(network)
        == "; inputs 2 (2 values), 3 (3 values), counted from 0, are looked up in an "
        "embedding: put the categories there, their values in the order of their indices"
    )
    wrong = FeatureSpace((*SPACE.attributes[:3], Categorical("town", ("A", "B"))))
    with pytest.raises(SchemaError, match="wrong number of network inputs: got 4; expected 6"):
        Model(wrong, network)


def test_a_log_softmax_gives_the_decisions_of_its_scores() -> None:
    module = made(Called)
    space = FeatureSpace(
        (Integer("a", -40, 40, sensitive=True), Real("b", -9, 9), Real("c", -9, 9))
    )
    model = Model(space, read_torch(module), Argmax(("no", "yes")))
    frame = [{"a": 0, "b": float(b), "c": float(c)} for b, c in RNG.uniform(-9, 9, (30, 2))]
    result = audit(model, frame, replay=runtime_of(module, model))
    assert result.pairs
    assert all(pair.replayed for pair in result.pairs)


def test_an_exception_of_a_graph_becomes_a_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stumble(*_: object) -> None:
        raise KeyError("odd")

    model = graph([node("MatMul", ["x", "W"], ["y"])], {"W": W}, {"x": (TensorProto.FLOAT, 5)})
    onnx.save(model, tmp_path / "model.onnx")
    monkeypatch.setattr("feta.readers.onnx.read._read_graph", stumble)
    with pytest.raises(
        NetworkError, match=r"model\.onnx: the graph cannot be read \(KeyError: 'odd'"
    ):
        read_onnx(tmp_path / "model.onnx")


CASTS = {
    TensorProto.UINT8: 255,
    TensorProto.INT8: 127,
    TensorProto.INT16: 2**15 - 1,
    TensorProto.UINT16: 2**16 - 1,
    TensorProto.BOOL: 1,
}


def cast_graph(kind: int, size: int) -> onnx.ModelProto:
    """Return a graph that looks up its first column after a cast, in a table of this size."""
    nodes = [
        node("Gather", ["x", "zero"], ["c"], axis=1),
        node("Cast", ["c"], ["d"], to=kind),
        node("Cast", ["d"], ["e"], to=TensorProto.INT64),
        node("Gather", ["table", "e"], ["f"]),
        node("Squeeze", ["f", "axis"], ["g"]),
        node("Slice", ["x", "axis", "end", "axis"], ["a"]),
        node("Concat", ["a", "g"], ["j"], axis=1),
        node("MatMul", ["j", "W"], ["y"]),
    ]
    table = np.zeros((size, 2), dtype=np.float32)
    table[-1] = 1.0  # the only row that a sample could miss
    arrays: dict[str, Array] = {"zero": whole(0), "axis": whole(1), "end": whole(2), "table": table}
    arrays["W"] = np.ones((3, 1), dtype=np.float32)
    return graph(nodes, arrays, {"x": (TensorProto.FLOAT, 2)})


@pytest.mark.parametrize(("kind", "largest"), CASTS.items())
def test_a_lookup_after_a_narrow_cast_is_read_only_if_nothing_wraps(
    kind: int, largest: int, tmp_path: Path
) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(cast_graph(kind, largest + 1), path)
    rows = np.array([[0.0, 1.0], [float(largest), 1.0]])
    run_session = onnx_scores(path)
    assert run_session is not None
    np.testing.assert_allclose(read_onnx(path)(rows), run_session(rows))
    onnx.save(cast_graph(kind, largest + 2), path)
    message = (
        rf"invalid format of operator 1 \(Cast\): got one that holds integers up to {largest}; "
        rf"expected one for the table of {largest + 2} rows that operator 3 \(Gather\) looks up; "
        "convert to int64"
    )
    with pytest.raises(NetworkError, match=message):
        read_onnx(path)


@pytest.mark.parametrize(
    ("casts", "message"),
    [
        ([TensorProto.INT32], r"operator 1 \(Cast\) truncates column 0 to integers"),
        ([TensorProto.UINT8], r"operator 1 \(Cast\) truncates column 0 to integers"),
        (
            [TensorProto.BOOL, TensorProto.INT64],
            r"operator 1 \(Cast\) truncates column 0 to integers",
        ),
        (
            [TensorProto.FLOAT16],
            r"operator 1 \(Cast\) converts to an unsupported type: got type 10; expected float "
            r"or double",
        ),
        ([TensorProto.STRING], "got type 8"),
    ],
)
def test_a_number_that_is_truncated_to_integers_is_refused(
    casts: list[int], message: str, tmp_path: Path
) -> None:
    names = ["c", *(f"d{index}" for index in range(len(casts)))]
    nodes = [node("Gather", ["x", "zero"], ["c"], axis=1)]
    for kind, before, after in zip(casts, names, names[1:], strict=False):
        nodes.append(node("Cast", [before], [after], to=kind))
    nodes += [
        node("Cast", [names[-1]], ["e"], to=TensorProto.FLOAT),
        node("Slice", ["x", "axis", "end", "axis"], ["a"]),
        node("Concat", ["a", "e"], ["j"], axis=1),
        node("MatMul", ["j", "W"], ["y"]),
    ]
    # Weights too small for the comparison of scores to notice.
    weights = np.array([[1.0], [1e-12]], dtype=np.float32)
    arrays: dict[str, Array] = {"zero": whole(0), "axis": whole(1), "end": whole(2), "W": weights}
    onnx.save(graph(nodes, arrays, {"x": (TensorProto.FLOAT, 2)}), tmp_path / "model.onnx")
    with pytest.raises(NetworkError, match=message):
        read_onnx(tmp_path / "model.onnx")


def test_a_cast_of_some_inputs_to_float32_is_a_rounding_of_the_source(tmp_path: Path) -> None:
    nodes = [
        node("Gather", ["x", "zero"], ["c"], axis=1),
        node("Cast", ["c"], ["d"], to=TensorProto.FLOAT),
        node("Cast", ["d"], ["e"], to=TensorProto.DOUBLE),
        node("MatMul", ["e", "W"], ["y"]),
    ]
    arrays: dict[str, Array] = {"zero": whole(0), "W": np.ones((1, 1))}
    model = graph(nodes, arrays, {"x": (TensorProto.DOUBLE, 2)})
    model.graph.output[0].type.tensor_type.elem_type = TensorProto.DOUBLE
    onnx.save(model, tmp_path / "model.onnx")
    assert read_onnx(tmp_path / "model.onnx").source == "float32"
