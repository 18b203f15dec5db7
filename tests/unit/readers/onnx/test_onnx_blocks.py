"""Blocks of the input in ONNX graphs: slices, splits, embeddings and casts."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from feta import NetworkError, read_onnx
from feta.readers.onnx.runtime import onnx_scores
from tests.extras import needs

pytestmark = needs("onnxruntime")

RNG = np.random.default_rng(5)
Array = NDArray[Any]
Kinds = Mapping[str, tuple[int, int]]
Option = Any  # of an operator


def graph(nodes: list[onnx.NodeProto], arrays: dict[str, Array], kinds: Kinds) -> onnx.ModelProto:
    """Return a graph whose inputs have these types and widths."""
    inputs = [
        helper.make_tensor_value_info(name, kind, ["n", width])
        for name, (kind, width) in kinds.items()
    ]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    stored = [numpy_helper.from_array(array, name) for name, array in arrays.items()]
    opset = [helper.make_opsetid("", 17)]
    return helper.make_model(
        helper.make_graph(nodes, "g", inputs, [output], stored), opset_imports=opset, ir_version=8
    )


def node(kind: str, inputs: list[str], outputs: list[str], **options: Option) -> onnx.NodeProto:
    return helper.make_node(kind, inputs, outputs, **options)


W = RNG.normal(size=(5, 2)).astype(np.float32)
TABLE = RNG.normal(size=(3, 2)).astype(np.float32)


def integers(*numbers: int) -> Array:
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
    "start": integers(1),
    "end": integers(2),
    "axes": integers(1),
    "sizes": integers(1, 1, 2),
    "picked": integers(3, 0),
    "one": np.array([1.0, 0.5], dtype=np.float32),
    "axis": integers(1),
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
    onnx.save(graph(nodes, ARRAYS | {"one_": integers(0)}, kinds), tmp_path / "model.onnx")
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
        "feta.readers.onnx.check._convert_to_double", lambda model, _: _double_weights(model)
    )
    with pytest.raises(
        NetworkError,
        match=r"FETA's scores differ from the graph's own by .* in row \d+, output \d; "
        r".*please report",
    ):
        read_onnx(tmp_path / "model.onnx")


def _double_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(2.0 * W.astype(np.float64), "W"))
    return model


def test_an_exception_of_a_graph_becomes_a_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise KeyError("odd")

    model = graph([node("MatMul", ["x", "W"], ["y"])], {"W": W}, {"x": (TensorProto.FLOAT, 5)})
    onnx.save(model, tmp_path / "model.onnx")
    monkeypatch.setattr("feta.readers.onnx.read._read_graph", fail)
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
    arrays: dict[str, Array] = {
        "zero": integers(0),
        "axis": integers(1),
        "end": integers(2),
        "table": table,
    }
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
    arrays: dict[str, Array] = {
        "zero": integers(0),
        "axis": integers(1),
        "end": integers(2),
        "W": weights,
    }
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
    arrays: dict[str, Array] = {"zero": integers(0), "W": np.ones((1, 1))}
    model = graph(nodes, arrays, {"x": (TensorProto.DOUBLE, 2)})
    model.graph.output[0].type.tensor_type.elem_type = TensorProto.DOUBLE
    onnx.save(model, tmp_path / "model.onnx")
    assert read_onnx(tmp_path / "model.onnx").source == "float32"
