import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from feta import NetworkError, read_onnx
from feta.readers.onnx.operators import OPERATORS
from feta.readers.onnx.runtime import MAX_FIXED_ROWS, onnx_scores
from feta.scorer.network.evaluation import Rows
from feta.scorer.network.exact import ExactNetwork
from tests.bad_files import NODES, WEIGHTS, good_model, graph_model, stored

RNG = np.random.default_rng(3)
PEOPLE = RNG.normal(size=(300, 4)).astype(np.float32).astype(np.float64) * 3
SMALL = {
    "W": RNG.normal(size=(4, 5)),
    "b": RNG.normal(size=5),
    "V": RNG.normal(size=(5, 1)),
    "c": RNG.normal(size=5),
    "row": RNG.normal(size=(1, 5)),
    "scalar": np.array(-0.75),
    "four": RNG.normal(size=4),
    "gain": RNG.normal(size=5),
    "shift": RNG.normal(size=5),
    "mean": RNG.normal(size=5),
    "spread": RNG.uniform(0.1, 2, size=5),
    "two": RNG.normal(size=(5, 2)),
    "three": RNG.normal(size=(5, 3)),
    "column": RNG.normal(size=(3, 1)),
    "six": RNG.normal(size=(4, 6)),
    "low": np.array(-0.4),
    "high": np.array([0.7]),
    "slopes": np.array([0.1, -0.5, 2.0, 0.0, 1.0]),
    "far": np.array(np.finfo(np.float32).max),
    "nan": np.array(np.nan),
}
SHAPES = {
    "columns": [-1, 5],
    "flat": [-1],
    "axes": [1],
    "groups": [-1, 3, 2],
    "thirds": [0, -1, 3],
    "halves": [0, 2, -1],
    "singles": [-1, 6, 1],
    "uneven": [-1, 4, 2],
    "unknown": [-1, -1, 2],
    "zero": [0, 5],
    "last": [-1],
}
node = helper.make_node


def written(path: Path, model: onnx.ModelProto) -> Path:
    file = path / "model.onnx"
    file.write_bytes(model.SerializeToString())
    return file


def small(nodes: Sequence[onnx.NodeProto], **options: Any) -> onnx.ModelProto:  # noqa: ANN401 - passed on
    kind = np.float64 if options.get("kind") == TensorProto.DOUBLE else np.float32
    used = {name for node in nodes for name in node.input}
    arrays = [stored(name, array, kind) for name, array in SMALL.items() if name in used]
    arrays += [stored(name, shape, np.int64) for name, shape in SHAPES.items() if name in used]
    return graph_model(nodes, arrays, **options)


def compare(path: Path, people: np.ndarray = PEOPLE) -> None:
    """Check that scores differ from onnxruntime's by no more than FETA's error bound."""
    network = read_onnx(path)
    runtime = onnx_scores(path)
    if runtime is None:
        pytest.skip("onnxruntime is not installed")
    bounded = Rows(ExactNetwork(network), people).scores(network.arithmetic)
    assert np.isfinite(bounded.errors).all()
    assert (np.abs(bounded.values - runtime(people)) <= bounded.errors).all()
    assert (bounded.errors < 1e-1).all()
    np.testing.assert_allclose(network(people), runtime(people), rtol=1e-4, atol=1e-4)


GEMM = node("Gemm", ["x", "W", "b"], ["h"])
LAST = node("MatMul", ["a", "V"], ["y"])


@pytest.mark.parametrize(
    "nodes",
    [
        [
            node("MatMul", ["x", "W"], ["h"]),
            node("Add", ["h", "b"], ["i"]),
            node("Relu", ["i"], ["a"]),
            LAST,
        ],
        [
            node("MatMul", ["x", "W"], ["h"]),
            node("Add", ["row", "h"], ["i"]),
            node("Relu", ["i"], ["a"]),
            LAST,
        ],
        [GEMM, node("Sub", ["h", "c"], ["i"]), node("Relu", ["i"], ["a"]), LAST],
        [GEMM, node("Sub", ["c", "h"], ["i"]), node("Relu", ["i"], ["a"]), LAST],
        [GEMM, node("Mul", ["h", "c"], ["i"]), node("Relu", ["i"], ["a"]), LAST],
        [GEMM, node("Mul", ["scalar", "h"], ["i"]), node("Relu", ["i"], ["a"]), LAST],
        [GEMM, node("Div", ["h", "c"], ["i"]), node("Relu", ["i"], ["a"]), LAST],
        [
            node("Sub", ["x", "four"], ["s"]),
            node("Div", ["s", "four"], ["t"]),
            node("Gemm", ["t", "W", "b"], ["h"]),
            node("Relu", ["h"], ["a"]),
            LAST,
        ],
        [
            GEMM,
            node("BatchNormalization", ["h", "gain", "shift", "mean", "spread"], ["i"]),
            node("Relu", ["i"], ["a"]),
            LAST,
        ],
        [
            GEMM,
            node("Relu", ["h"], ["i"]),
            node(
                "BatchNormalization", ["i", "gain", "shift", "mean", "spread"], ["a"], epsilon=0.25
            ),
            LAST,
        ],
        [
            GEMM,
            node("Relu", ["h"], ["i"]),
            node("Add", ["i", "c"], ["j"]),
            node("Relu", ["j"], ["a"]),
            LAST,
        ],
        [
            GEMM,
            node("Relu", ["h"], ["a"]),
            node("MatMul", ["a", "V"], ["s"]),
            node("Squeeze", ["s", "axes"], ["y"]),
        ],
        [
            GEMM,
            node("Relu", ["h"], ["a"]),
            node("MatMul", ["a", "V"], ["s"]),
            node("Reshape", ["s", "flat"], ["y"]),
        ],
        [
            GEMM,
            node("Reshape", ["h", "columns"], ["i"]),
            node("Flatten", ["i"], ["j"]),
            node("Relu", ["j"], ["a"]),
            LAST,
        ],
        [
            node("Cast", ["x"], ["d"], to=TensorProto.FLOAT),
            node("Identity", ["d"], ["e"]),
            node("Gemm", ["e", "W", "b"], ["h"]),
            node("Dropout", ["h"], ["i"]),
            node("Relu", ["i"], ["a"]),
            LAST,
        ],
        [
            GEMM,
            node("Constant", [], ["k"], value_float=0.3),
            node("Mul", ["h", "k"], ["i"]),
            node("Relu", ["i"], ["a"]),
            LAST,
        ],
        [
            GEMM,
            node("Constant", [], ["k"], value_floats=[0.3, -1.0, 2.0, 0.5, 7.0]),
            node("Add", ["h", "k"], ["i"]),
            node("Relu", ["i"], ["a"]),
            LAST,
        ],
        [GEMM, node("Relu", ["h"], ["a"]), node("MatMul", ["a", "two"], ["y"])],
        [node("Gemm", ["x", "W"], ["y"])],
    ],
)
@pytest.mark.parametrize("kind", [TensorProto.FLOAT, TensorProto.DOUBLE])
def test_hand_written_graphs_score_as_in_onnxruntime(
    nodes: list[onnx.NodeProto], kind: int, tmp_path: Path
) -> None:
    if kind == TensorProto.DOUBLE and any(node.op_type in ("Constant", "Cast") for node in nodes):
        return  # their numbers are float32
    path = written(tmp_path, small(nodes, kind=kind))
    compare(path)
    expected = "float64" if kind == TensorProto.DOUBLE else "float32"
    assert read_onnx(path).source == expected


FLOAT32_ONLY = {"HardSigmoid"}  # in onnxruntime
WIDE = node("MatMul", ["x", "six"], ["h"])
REDUCED = node("ReduceMax", ["g"], ["a"], axes=[-1], keepdims=0)


@pytest.mark.parametrize(
    "nodes",
    [
        [GEMM, node("LeakyRelu", ["h"], ["a"]), LAST],
        [GEMM, node("LeakyRelu", ["h"], ["a"], alpha=-0.3), LAST],
        [GEMM, node("PRelu", ["h", "slopes"], ["a"]), LAST],
        [GEMM, node("PRelu", ["h", "row"], ["a"]), LAST],
        [GEMM, node("PRelu", ["h", "scalar"], ["a"]), LAST],
        [GEMM, node("Clip", ["h", "low", "high"], ["a"]), LAST],
        [GEMM, node("Clip", ["h", "low"], ["a"]), LAST],
        [GEMM, node("Clip", ["h", "", "high"], ["a"]), LAST],
        [GEMM, node("Clip", ["h"], ["a"]), LAST],
        [GEMM, node("Clip", ["h", "low", "far"], ["a"]), LAST],
        [GEMM, node("Abs", ["h"], ["a"]), LAST],
        [GEMM, node("HardSigmoid", ["h"], ["a"]), LAST],
        [
            GEMM,
            node("Relu", ["h"], ["i"]),
            node("HardSigmoid", ["i"], ["a"], alpha=1 / 6, beta=-0.25),
            LAST,
        ],
        [GEMM, node("Max", ["h", "low"], ["a"]), LAST],
        [GEMM, node("Max", ["high", "h"], ["a"]), LAST],
        [GEMM, node("Min", ["h", "low"], ["a"]), LAST],
        [
            WIDE,
            node("Reshape", ["h", "groups"], ["g"]),
            REDUCED,
            node("MatMul", ["a", "column"], ["y"]),
        ],
        [
            WIDE,
            node("Reshape", ["h", "groups"], ["g"]),
            node("ReduceMax", ["g"], ["y"], axes=[2], keepdims=0),
        ],
        [
            WIDE,
            node("Reshape", ["h", "thirds"], ["g"]),
            node("ReduceMax", ["g"], ["y"], axes=[-1], keepdims=0),
        ],
        [
            WIDE,
            node("Reshape", ["h", "halves"], ["g"]),
            node("ReduceMax", ["g"], ["y"], axes=[-1], keepdims=0),
        ],
        [
            WIDE,
            node("Reshape", ["h", "singles"], ["g"]),
            node("ReduceMax", ["g"], ["y"], axes=[-1], keepdims=0),
        ],
        [
            GEMM,
            node("Abs", ["h"], ["i"]),
            node("LeakyRelu", ["i"], ["j"]),
            node("Clip", ["j", "low", "high"], ["y"]),
        ],
    ],
)
@pytest.mark.parametrize("kind", [TensorProto.FLOAT, TensorProto.DOUBLE])
def test_every_piecewise_linear_activation_scores_as_in_onnxruntime(
    nodes: list[onnx.NodeProto], kind: int, tmp_path: Path
) -> None:
    names = {node.op_type for node in nodes}
    if kind == TensorProto.DOUBLE and names & FLOAT32_ONLY:
        return
    compare(written(tmp_path, small(nodes, kind=kind)))


@pytest.mark.parametrize("limits", [{"min": -0.5}, {"max": 0.25}, {"min": 0.0, "max": 6.0}, {}])
def test_a_clip_of_early_opsets_has_its_limits_as_attributes(
    limits: dict[str, Any], tmp_path: Path
) -> None:
    compare(written(tmp_path, small([GEMM, node("Clip", ["h"], ["a"], **limits), LAST], opset=10)))


def test_a_maxout_of_later_opsets_has_its_axes_as_an_input(tmp_path: Path) -> None:
    nodes = [
        WIDE,
        node("Reshape", ["h", "groups"], ["g"], allowzero=1),
        node("ReduceMax", ["g", "last"], ["y"], keepdims=0, noop_with_empty_axes=0),
    ]
    compare(written(tmp_path, small(nodes, opset=18)))


def test_a_reshape_may_contain_the_fixed_number_of_rows(tmp_path: Path) -> None:
    nodes = [
        WIDE,
        node("Constant", [], ["k"], value_ints=[2, 3, 2]),
        node("Reshape", ["h", "k"], ["g"]),
        node("ReduceMax", ["g"], ["y"], axes=[-1], keepdims=0),
    ]
    compare(written(tmp_path, small(nodes, rows=2)), PEOPLE[:3])


def test_a_last_sigmoid_is_removed(tmp_path: Path) -> None:
    path = written(tmp_path, good_model())
    network, runtime = read_onnx(path), onnx_scores(path)
    if runtime is None:
        pytest.skip("onnxruntime is not installed")
    assert network.sigmoid
    np.testing.assert_allclose(1 / (1 + np.exp(-network(PEOPLE))), runtime(PEOPLE), atol=1e-6)
    bare = written(
        tmp_path,
        graph_model(NODES[:3], [stored(*item) for item in WEIGHTS.items()], outputs=["h2"]),
    )
    assert read_onnx(bare).fingerprint != network.fingerprint
    compare(bare)


def test_a_softmax_of_two_outputs_becomes_their_difference(tmp_path: Path) -> None:
    nodes = [
        GEMM,
        node("Relu", ["h"], ["a"]),
        node("MatMul", ["a", "two"], ["s"]),
        node("Softmax", ["s"], ["y"], axis=1),
    ]
    path = written(tmp_path, small(nodes))
    network, runtime = read_onnx(path), onnx_scores(path)
    if runtime is None:
        pytest.skip("onnxruntime is not installed")
    assert network.sigmoid
    assert network.outputs == 2
    score = network.difference()(PEOPLE)[:, 0]
    np.testing.assert_allclose(1 / (1 + np.exp(-score)), runtime(PEOPLE)[:, 1], atol=1e-5)


def test_a_softmax_of_several_outputs_is_removed(tmp_path: Path) -> None:
    nodes = [
        GEMM,
        node("Relu", ["h"], ["a"]),
        node("MatMul", ["a", "three"], ["s"]),
        node("Softmax", ["s"], ["y"]),
    ]
    path = written(tmp_path, small(nodes))
    network, runtime = read_onnx(path), onnx_scores(path)
    if runtime is None:
        pytest.skip("onnxruntime is not installed")
    assert (network.sigmoid, network.outputs) == (True, 3)
    powers = np.exp(network(PEOPLE) - network(PEOPLE).max(axis=1, keepdims=True))
    chances = powers / powers.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(chances, runtime(PEOPLE), atol=1e-5)


@pytest.mark.parametrize("rows", [1, 3])
def test_a_fixed_number_of_rows_is_padded_to_replay_one_row(rows: int, tmp_path: Path) -> None:
    path = written(tmp_path, small([GEMM, node("Relu", ["h"], ["a"]), LAST], rows=rows))
    compare(path, PEOPLE[:5])


def test_a_model_that_onnxruntime_cannot_run_is_not_replayed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    too_many_rows = small([GEMM, node("Relu", ["h"], ["a"]), LAST], rows=MAX_FIXED_ROWS + 1)
    assert onnx_scores(written(tmp_path, too_many_rows)) is None
    assert onnx_scores(tmp_path / "nowhere.onnx") is None
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    assert onnx_scores(written(tmp_path, good_model())) is None


def external(path: Path, location: str = "weights.bin", **fields: str) -> Path:
    model = good_model()
    tensor = model.graph.initializer[0]
    (path / "weights.bin").write_bytes(bytes(8) + tensor.raw_data)
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in {"location": location, "offset": "8", "length": "48", **fields}.items():
        tensor.external_data.add(key=key, value=value)
    return written(path, model)


def test_external_weights_are_read_only_on_request(tmp_path: Path) -> None:
    path = external(tmp_path)
    with pytest.raises(NetworkError, match=r"'W1' is stored in another file, .*external_data=True"):
        read_onnx(path)
    embedded = read_onnx(written(tmp_path, good_model()))
    assert read_onnx(external(tmp_path), external_data=True).fingerprint == embedded.fingerprint


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"location": "../weights.bin"}, "has an invalid location: got '../weights.bin'"),
        ({"location": "/dev/zero"}, "has an invalid location: got '/dev/zero'"),
        ({"location": ""}, "got a folder or a device; expected a regular file"),
        ({"location": ".."}, "got a folder or a device; expected a regular file"),
        ({"location": "nowhere.bin"}, "there is no such file: 'nowhere.bin'"),
        (
            {"offset": "9"},
            "exceeds its file: got offset 9 and length 48; expected both within 'weights.bin', "
            "which has 56 bytes",
        ),
        ({"offset": "-1"}, "has an invalid offset: got '-1'; expected an integer"),
        ({"offset": "9" * 40}, "has an invalid offset: got '9+'; expected an integer"),
        ({"length": "x"}, "has an invalid length: got 'x'; expected an integer"),
        ({"length": "49"}, "does not match its shape: got 49 bytes; expected 48"),
    ],
)
def test_external_weights_must_be_in_the_folder_of_the_model(
    fields: dict[str, str], message: str, tmp_path: Path
) -> None:
    with pytest.raises(NetworkError, match=message):
        read_onnx(external(tmp_path, **fields), external_data=True)


RELU = node("Relu", ["h"], ["a"])


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        (
            [node("Gemm", ["x", "W", "b"], ["y"], transA=1)],
            "has an unsupported left operand; expected the value before it, not transposed",
        ),
        (
            [node("Gemm", ["W", "x"], ["y"])],
            "has an unsupported left operand; expected the value before it, not transposed",
        ),
        (
            [node("Gemm", ["x", "W", "b"], ["y"], alpha=2.0)],
            "has unsupported factors: got .*; expected alpha and beta 1",
        ),
        ([node("Gemm", ["x"], ["y"])], "lacks an input or an output"),
        ([node("Gemm", ["x", "W"], [])], "lacks an input or an output"),
        (
            [node("Gemm", ["x", "W", "b"], ["y"], broadcast=1)],
            "has an unsupported attribute: got 'broadcast'; expected only 'alpha'",
        ),
        (
            [node("Gemm", ["x", "nowhere"], ["y"])],
            "reads 'nowhere', which no operator before it defines",
        ),
        ([node("MatMul", ["x", "x"], ["y"])], "reads 'x'; expected a stored constant"),
        ([GEMM, node("Dropout", ["c", "h"], ["y"])], "does not read the value before it"),
        (
            [node("MatMul", ["W", "x"], ["y"])],
            "has an unsupported left operand; expected the value before it",
        ),
        (
            [GEMM, node("Div", ["c", "h"], ["y"])],
            "divides a constant by the value; expected the value divided by a constant",
        ),
        (
            [GEMM, node("Mul", ["h", "h"], ["y"])],
            "combines 2 values that depend on the input; of two values, only sums",
        ),
        ([GEMM, node("Mul", ["h"], ["y"])], "number of inputs: got 1; expected 2"),
        (
            [GEMM, node("Add", ["h", "four"], ["y"])],
            r"has a constant of the wrong shape: got \(4,\); expected one number, or one for "
            r"each of 5 columns",
        ),
        (
            [GEMM, node("Add", ["h", "W"], ["y"])],
            r"has a constant of the wrong shape: got \(4, 5\); expected one number, or one for "
            r"each of 5 columns",
        ),
        (
            [GEMM, node("BatchNormalization", ["h", "gain"], ["y"])],
            "is not in inference mode; expected one output, four stored arrays",
        ),
        (
            [
                GEMM,
                node(
                    "BatchNormalization",
                    ["h", "gain", "shift", "mean", "spread"],
                    ["y"],
                    training_mode=1,
                ),
            ],
            "is not in inference mode",
        ),
        (
            [
                GEMM,
                node(
                    "BatchNormalization", ["h", "gain", "shift", "mean", "spread"], ["y", "m", "v"]
                ),
            ],
            "is not in inference mode",
        ),
        (
            [GEMM, node("BatchNormalization", ["h", "gain", "shift", "mean", "c"], ["y"])],
            "variance",
        ),
        (
            [GEMM, node("Cast", ["h"], ["y"], to=TensorProto.INT64)],
            "converts to an unsupported type: got type 7; expected float or double",
        ),
        (
            [GEMM, node("Reshape", ["h", "flat"], ["y"])],
            r"changes the shape: got \[-1\]; expected \(rows, 5\)",
        ),
        ([GEMM, node("Squeeze", ["h"], ["y"])], "reads several values: got 5; expected one score"),
        (
            [GEMM, node("Flatten", ["h"], ["y"], axis=0)],
            r"merges rows: got axis 0; expected axis 1",
        ),
        (
            [GEMM, node("Softmax", ["h"], ["y"], axis=0)],
            "is not over a row's outputs: got axis 0 and 5 output.s.; expected axis 1",
        ),
        (
            [GEMM, RELU, node("MatMul", ["a", "V"], ["s"]), node("Softmax", ["s"], ["y"])],
            "is not over a row's outputs: got axis -1 and 1 output.s.; expected axis 1, two",
        ),
        (
            [GEMM, node("Erf", ["h"], ["a"]), LAST],
            r"operator 1 \(Erf\) is not piecewise-linear, nor an activation that FETA encloses",
        ),
        (
            [GEMM, node("Selu", ["h"], ["a"], alpha=1.0), LAST],
            r"operator 1 \(Selu\) has unusual constants: got .*; expected",
        ),
        (
            [GEMM, node("Gelu", ["h"], ["a"], approximate="sine"), LAST],
            r"operator 1 \(Gelu\) has an unsupported form: got 'sine'; expected 'none' or 'tanh'",
        ),
        (
            [GEMM, node("Sigmoid", ["h"], ["y"])],
            "the last operator is a Sigmoid: got 5 outputs; expected one; several sigmoids are",
        ),
        (
            [GEMM, node("Shape", ["h"], ["a"]), LAST],
            r"\(Shape\) is not supported.*; write -1 for the number of rows",
        ),
        ([GEMM, node("ArgMax", ["h"], ["y"])], "; export the scores without it"),
        ([GEMM, node("PRelu", ["slopes", "h"], ["y"])], "does not read the value before it"),
        (
            [GEMM, node("PRelu", ["h", "four"], ["y"])],
            r"has a constant of the wrong shape: got \(4,\); expected one number, or one for "
            r"each of 5 columns",
        ),
        ([GEMM, node("PRelu", ["h"], ["y"])], "lacks an input or an output"),
        ([GEMM, node("Clip", ["low", "h"], ["y"])], "does not read the value before it"),
        (
            [GEMM, node("Clip", ["h", "high", "low"], ["y"])],
            r"has invalid limits: got min 0\.\d+ and max -0\.4.*; expected min below max",
        ),
        (
            [GEMM, node("Clip", ["h", "nan"], ["y"])],
            "has invalid limits: got min nan and max inf; expected min below max",
        ),
        (
            [GEMM, node("Clip", ["h", "slopes"], ["y"])],
            r"has an unsupported limit: got the shape \(5,\); expected one number",
        ),
        (
            [GEMM, node("Max", ["h", "slopes"], ["y"])],
            r"has an unsupported limit: got the shape \(5,\); expected one number",
        ),
        ([GEMM, node("Min", ["h", "low", "high"], ["y"])], "number of inputs: got 3; expected 2"),
        (
            [GEMM, node("LeakyRelu", ["h"], ["y"], alpha=float("nan"))],
            "expected finite numbers|has invalid numbers: got",
        ),
        (
            [GEMM, node("HardSigmoid", ["h"], ["y"], beta=float("inf"))],
            "has parameters that are not finite: got .*; expected a finite alpha and beta",
        ),
        (
            [WIDE, node("Reshape", ["h", "uneven"], ["y"])],
            r"does not form equal groups: got \[-1, 4, 2\]; expected \(rows, groups, values\) "
            r"with 6 values",
        ),
        (
            [WIDE, node("Reshape", ["h", "unknown"], ["y"])],
            r"does not form equal groups: got \[-1, -1, 2\]",
        ),
        (
            [WIDE, node("Reshape", ["h", "groups"], ["y"])],
            "the graph ends in the groups 'y'; expected ReduceMax after them",
        ),
        (
            [WIDE, node("Reshape", ["h", "groups"], ["g"]), node("Relu", ["g"], ["y"])],
            "follows a Reshape to groups; expected ReduceMax there",
        ),
        (
            [WIDE, node("ReduceMax", ["h"], ["y"], axes=[1], keepdims=0)],
            r"is not a maximum over groups; expected a Reshape to \(rows, groups, values\) "
            r"before it",
        ),
        (
            [
                WIDE,
                node("Reshape", ["h", "groups"], ["g"]),
                node("ReduceMax", ["g"], ["y"], axes=[1], keepdims=0),
            ],
            r"is not a maximum over groups; expected .* axes -1 and keepdims 0",
        ),
        (
            [
                WIDE,
                node("Reshape", ["h", "groups"], ["g"]),
                node("ReduceMax", ["g"], ["y"], axes=[2]),
            ],
            r"is not a maximum over groups; expected .* axes -1 and keepdims 0",
        ),
        (
            [GEMM, node("Reshape", ["h", "zero"], ["y"], allowzero=1)],
            r"does not keep the rows: got \[0, 5\] with allowzero",
        ),
        (
            [node("Relu", ["x"], ["y"])],
            r"invalid position of operator 0 \(Relu\): .*; expected an affine layer",
        ),
        ([node("Identity", ["x"], ["y"])], "at least one affine layer"),
        ([node("Relu", ["c"], ["y"])], "reads constants only; export with constant folding"),
        (
            [GEMM, node("Identity", ["h"], ["z"])],
            "no operator computes the graph's output 'y'",
        ),
        (
            [GEMM, node("Constant", [], ["k"], value_string="x"), node("Add", ["h", "k"], ["y"])],
            "holds no array and no number",
        ),
        ([GEMM, node("Constant", [], ["W"], value_float=1.0)], "the graph defines 'W' twice"),
        ([GEMM, node("If", ["h"], ["y"])], r"\(If\) is not supported; expected Abs, Add, Batch"),
        (
            [
                GEMM,
                node("Constant", [], ["r"], value_float=0.5),
                node("Constant", [], ["t"], value_int=1),
                node("Dropout", ["h", "r", "t"], ["y"]),
            ],
            r"inference mode; export after module\.eval",
        ),
        (
            [GEMM, node("Constant", [], ["k"], value_float=0.0), node("Div", ["h", "k"], ["y"])],
            "divides by 0",
        ),
    ],
)
def test_an_unsupported_graph_is_refused_by_operator(
    nodes: list[onnx.NodeProto], message: str, tmp_path: Path
) -> None:
    with pytest.raises(NetworkError, match=message):
        read_onnx(written(tmp_path, small(nodes)))


def test_numbers_that_overflow_when_folded_are_refused(tmp_path: Path) -> None:
    def double(**arrays: list[float]) -> list[onnx.TensorProto]:
        return [stored(name, array, np.float64) for name, array in arrays.items()]

    weight = stored("big", np.full((4, 1), 1e308), np.float64)
    nodes = [node("Gemm", ["x", "big"], ["h"]), node("Mul", ["h", "huge"], ["y"])]
    model = graph_model(nodes, [weight, *double(huge=[1e308])], kind=TensorProto.DOUBLE)
    with pytest.raises(
        NetworkError, match=r"invalid weights of a layer: .*; expected finite numbers"
    ):
        read_onnx(written(tmp_path, model))
    norm = node("BatchNormalization", ["h", "huge", "one", "one", "tiny"], ["y"])
    nodes = [node("Gemm", ["x", "big"], ["h"]), norm]
    arrays = [weight, *double(huge=[1e308], one=[1.0], tiny=[1e-9])]
    with pytest.raises(
        NetworkError, match="invalid weight after folding the scaling: got a number beyond float64"
    ):
        read_onnx(written(tmp_path, graph_model(nodes, arrays, kind=TensorProto.DOUBLE)))


def changed(change: str) -> onnx.ModelProto:
    model = good_model()
    graph = model.graph
    match change:
        case "inputs":
            del graph.input[:]
        case "kind":
            graph.input[0].type.tensor_type.elem_type = TensorProto.INT64
        case "shape":
            del graph.input[0].type.tensor_type.shape.dim[0]
        case "array":
            graph.initializer[1].data_type = TensorProto.FLOAT16
        case "negative":
            graph.initializer[1].dims[:] = [-1]
        case "twice":
            graph.initializer.append(graph.initializer[0])
        case "sparse":
            graph.sparse_initializer.add()
        case "no opset":
            del model.opset_import[:]
    return model


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("inputs", "the graph has no input; expected a table of numbers"),
        ("kind", "expected float or double numbers"),
        (
            "shape",
            r"the graph's input 'x' has an unsupported shape: got \[4\]; expected "
            r"\(rows, columns\)",
        ),
        (
            "array",
            "the stored array 'b1' has an unsupported type: got type 10; expected float, "
            "double or integers; export it as",
        ),
        (
            "negative",
            r"the stored array 'b1' has an invalid size: got the shape \[-1\]; expected at most",
        ),
        ("twice", "the graph defines 'W1' twice"),
        ("sparse", "the graph has sparse arrays; expected dense ones"),
        ("no opset", "the opset is not supported: got none; expected 7 to"),
    ],
)
def test_an_unsupported_file_is_refused(change: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(NetworkError, match=message):
        read_onnx(written(tmp_path, changed(change)))


def test_weights_may_be_stored_as_lists_of_numbers(tmp_path: Path) -> None:
    model = good_model()
    for index, (name, array) in enumerate(WEIGHTS.items()):
        numbers = array.astype(np.float32).ravel().tolist()
        tensor = helper.make_tensor(name, TensorProto.FLOAT, array.shape, numbers)
        model.graph.initializer[index].CopyFrom(tensor)
    expected = read_onnx(written(tmp_path, good_model())).fingerprint
    assert read_onnx(written(tmp_path, model)).fingerprint == expected


NORM_INPUTS = ["h", "gain", "shift", "mean", "spread"]


@pytest.mark.parametrize("opset", [7, 8, 9, 13, 14, 17])
def test_a_batch_norm_of_every_opset_uses_its_stored_statistics(opset: int, tmp_path: Path) -> None:
    norm = node("BatchNormalization", NORM_INPUTS, ["i"], epsilon=0.25, momentum=0.5)
    path = written(tmp_path, small([GEMM, norm, node("Relu", ["i"], ["a"]), LAST], opset=opset))
    compare(path)
    first = PEOPLE @ SMALL["W"] + SMALL["b"]
    scaled = (first - SMALL["mean"]) / np.sqrt(SMALL["spread"] + 0.25)
    by_hand = np.maximum(scaled * SMALL["gain"] + SMALL["shift"], 0) @ SMALL["V"]
    np.testing.assert_allclose(read_onnx(path)(PEOPLE), by_hand, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("opset", "options", "outputs", "message"),
    [
        (
            8,
            {"spatial": 0},
            ["i"],
            r"\(BatchNormalization\) has unsupported statistics: got spatial 0; expected "
            r"statistics per column \(spatial 1\)",
        ),
        (9, {}, ["i", "m", "v", "sm", "sv"], "is not in inference mode"),
        (15, {"training_mode": 1}, ["i", "m", "v"], "is not in inference mode"),
        (15, {"training_mode": 1}, ["i"], "is not in inference mode"),
    ],
)
def test_a_batch_norm_in_training_mode_is_refused(
    opset: int, options: dict[str, Any], outputs: list[str], message: str, tmp_path: Path
) -> None:
    norm = node("BatchNormalization", NORM_INPUTS, outputs, **options)
    model = small([GEMM, norm, node("Relu", ["i"], ["a"]), LAST], opset=opset)
    with pytest.raises(NetworkError, match=message):
        read_onnx(written(tmp_path, model))


def test_scores_are_compared_far_from_0_and_without_the_last_sigmoid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = node("Clip", ["s"], ["t"], min=-300.0, max=300.0)  # reached by rows of scale 1e3 only
    ends = [node("MatMul", ["a", "V"], ["s"]), limits, node("Sigmoid", ["t"], ["y"])]
    path = written(tmp_path, small([GEMM, node("Relu", ["h"], ["a"]), *ends], opset=10))
    monkeypatch.setitem(OPERATORS, "Clip", lambda *_: None)
    with pytest.raises(NetworkError, match="scores differ from the graph's own by"):
        read_onnx(path)
