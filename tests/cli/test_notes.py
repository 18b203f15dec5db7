"""Notes about how a model was read, on the terminal and in the report."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import feta

Run = Callable[..., tuple[int, str, str]]

SCHEMA = """[decision]
DECISION

[columns]
age = { type = "integer", min = 0, max = 9, sensitive = true }
income = { type = "number", min = 0, max = 9 }
"""
NOTE = (
    "the model has no sigmoid at its end, so its outputs are treated as logits and "
    "threshold = 0.5 means score = 0.0; write score = 0.0 in [decision] if that is "
    "right, or score = 0.5"
)


def write_model(path: Path, last: str = "") -> None:
    """Write age/10 + income − 5, with or without a last operator."""
    array = numpy_helper.from_array
    names = [name for name in (last,) if name]
    nodes = [helper.make_node("Gemm", ["x", "W", "b"], ["s" if names else "y"])]
    nodes += [helper.make_node(name, ["s"], ["y"]) for name in names]
    stored = [
        array(np.array([[0.1], [1.0]], dtype=np.float32), "W"),
        array(np.array([-5.0], dtype=np.float32), "b"),
    ]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "g",
        [value("x", TensorProto.FLOAT, ["n", 2])],
        [value("y", TensorProto.FLOAT, None)],
        stored,
    )
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    write_model(Path("scores.onnx"))
    write_model(Path("chances.onnx"), "Sigmoid")
    Path("half.toml").write_text(SCHEMA.replace("DECISION", "threshold = 0.5"))
    Path("more.toml").write_text(SCHEMA.replace("DECISION", "threshold = 0.7"))
    Path("score.toml").write_text(SCHEMA.replace("DECISION", "score = 0.0"))
    Path("people.csv").write_text("age,income\n1,1\n2,8\n9,4.5\n")
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_a_threshold_without_a_sigmoid_is_explained_everywhere(feta_: Run) -> None:
    arguments = ("scores.onnx", "--schema", "half.toml")
    code, _, err = feta_("audit", *arguments, "--data", "people.csv", "--out", "audit")
    assert code == 1
    assert err.count(f"note: {NOTE}") == 1
    assert json.loads(Path("audit/audit.json").read_text())["model"]["notes"][0].startswith(NOTE)
    assert "threshold = 0.5 means score = 0.0" in Path("audit/report.html").read_text()
    _, out, _ = feta_("audit", *arguments, "--data", "people.csv", "--format", "md")
    assert "threshold = 0.5 means score = 0.0" in out
    _, _, err = feta_("predict", *arguments, "--data", "people.csv")
    assert NOTE in err
    _, out, _ = feta_("doctor", *arguments)
    assert f"Note: {NOTE}" in out
    _, out, _ = feta_("doctor", *arguments, "--json")
    assert json.loads(out)["notes"][0].startswith(NOTE)
    _, _, err = feta_("export", *arguments, "--out", "model.feta")
    assert NOTE in err


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("model", "schema"),
    [("scores.onnx", "score.toml"), ("chances.onnx", "half.toml"), ("chances.onnx", "more.toml")],
)
def test_an_unambiguous_threshold_has_no_note(feta_: Run, model: str, schema: str) -> None:
    code, out, err = feta_("doctor", model, "--schema", schema)
    assert code == 0
    assert "sigmoid" not in out + err


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("command", ["doctor", "audit", "predict"])
def test_another_threshold_without_a_sigmoid_is_refused(feta_: Run, command: str) -> None:
    data = () if command == "doctor" else ("--data", "people.csv")
    code, _, err = feta_(command, "scores.onnx", "--schema", "more.toml", *data)
    assert code == 2
    assert (
        "more.toml: [decision]: threshold = 0.7 is a probability, but the model has no sigmoid"
        in err
    )
    assert "write score = 0.84729" in err
    assert "score = 0.7 if it compares the outputs themselves" in err


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("model", "line"), [("scores.onnx", "score = 0.0"), ("chances.onnx", "threshold = 0.5")]
)
def test_init_writes_a_score_or_a_threshold_by_the_network_s_output(
    feta_: Run, model: str, line: str
) -> None:
    code, _, _ = feta_("init", model, "people.csv", "--sensitive", "age", "--out", "new.toml")
    assert code == 0
    assert line in Path("new.toml").read_text()
    code, out, err = feta_("doctor", model, "--schema", "new.toml")
    assert code == 0
    assert "sigmoid" not in out + err


@pytest.mark.usefixtures("folder")
def test_a_module_saved_in_training_mode_is_audited_in_evaluation_mode(feta_: Run) -> None:
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    layers = torch.nn
    module = layers.Sequential(layers.Linear(2, 4), layers.Dropout(0.5), layers.Linear(4, 1))
    torch.save(module.train(), "train.pt")
    torch.save(module.eval(), "still.pt")
    for name, expected in (("train.pt", True), ("still.pt", False)):
        arguments = (name, "--trust-pickle", "--schema", "score.toml")
        _, out, _ = feta_("doctor", *arguments)
        assert "can be audited" in out
        assert "the same decisions" in out
        note = (
            "train.pt was saved in training mode (module '1' (Dropout) is in "
            "training mode); FETA audits its evaluation mode"
        )
        assert (note in out) is expected
        _, _, err = feta_("predict", *arguments, "--data", "people.csv")
        assert (note in err) is expected


def test_two_outputs_are_compared_as_by_a_softmax(folder: Path) -> None:
    network = feta.Network.from_layers([(np.ones((2, 2)), [0.0, 1.0])])
    assert feta.read_schema(folder / "half.toml").score_note(network) == ""
    schema = feta.read_schema(folder / "more.toml")
    assert "threshold = 0.7 is compared with the softmax of its two outputs" in schema.score_note(
        network
    )
    rule = schema.model(network).rule
    assert isinstance(rule, feta.Threshold)
    assert rule.value == pytest.approx(np.log(0.7 / 0.3))
