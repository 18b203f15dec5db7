"""Networks that are counted: what their outputs mean, in Python and with a schema."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import feta
from feta import Categorical, FeatureSpace, Integer, Model, NetworkError, Real, SchemaError
from feta.arrays import Matrix
from feta.readers.load_function import ModelOrigin, Opening, open_any
from feta.readers.network_function import NetworkFunction
from feta.readers.read_model import CountedModelWarning
from feta.readers.source import SourceOptions
from feta.rounding import AGREEMENT_NETWORK_FLOAT32

pytest.importorskip("torch", reason="torch is not installed")

import torch
from torch import nn

from feta.readers.torch.function import torch_function

SPACE = FeatureSpace(
    (
        Integer("age", 0, 9, sensitive=True),
        Categorical("sex", ("f", "m"), sensitive=True),
        Real("income", 0, 4),
    )
)
ROWS = np.array(
    [[age, sex == "f", sex == "m", 1.5] for age in range(10) for sex in ("f", "m")], dtype=float
)
SCHEMA = """
[decision]
favorable = "yes"
unfavorable = "no"
{decision}
[columns]
age = {{ type = "integer", min = 0, max = 9, sensitive = true, center = 2, scale = 0.5 }}
sex = {{ type = "category", values = ["f", "m"], sensitive = true }}
income = {{ type = "number", min = 0, max = 4 }}
"""


class Tangent(nn.Module):
    """tanh, in a form that no reader knows."""

    def forward(self, rows: Any) -> Any:  # noqa: ANN401 - a tensor
        above, below = torch.exp(rows), torch.exp(-rows)
        return (above - below) / (above + below)


def smooth(*end: Any) -> Any:  # noqa: ANN401 - torch is an extra
    """Make a network with tanh whose score is about (age − 4.5) / 4 plus a bonus."""
    first, last = nn.Linear(4, 2), nn.Linear(2, 1)
    with torch.no_grad():
        first.weight.copy_(torch.tensor([[0.25, 0.0, 0.5, 0.0], [0.0, 0.0, 0.0, 0.25]]))
        first.bias.copy_(torch.tensor([-1.25, 0.0]))
        last.weight.copy_(torch.tensor([[1.0, 0.125]]))
        last.bias.zero_()
    return nn.Sequential(first, Tangent(), last, *end).eval()


def by_hand(rows: Matrix) -> Matrix:
    """Return the score of the network, in NumPy."""
    hidden = np.tanh(0.25 * rows[:, 0] + 0.5 * rows[:, 2] - 1.25)
    return hidden + 0.125 * np.tanh(0.25 * rows[:, 3])


class Squeezed(nn.Module):
    """A network that ends in a function and a change of shape."""

    def __init__(self, end: Callable[[Any], Any]) -> None:
        super().__init__()
        self.inner, self.end = smooth(), end

    def forward(self, rows: Any) -> Any:  # noqa: ANN401 - a tensor
        return self.end(self.inner(rows)).squeeze(1)


class Branching(nn.Module):
    """A network that cannot be traced."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = smooth()

    def forward(self, rows: Any) -> Any:  # noqa: ANN401 - a tensor
        scores = self.inner(rows)
        return scores if len(rows) and scores.max() > -100 else -scores


@pytest.mark.parametrize(
    ("make", "end"),
    [
        (smooth, "scores"),
        (lambda: smooth(nn.Sigmoid()), "sigmoid"),
        (lambda: smooth(nn.Softmax(1)), "softmax"),
        (lambda: smooth(nn.Softplus()), "unknown"),
        (lambda: Squeezed(torch.sigmoid), "sigmoid"),
        (lambda: Squeezed(lambda scores: scores.sigmoid()), "sigmoid"),
        (lambda: Squeezed(lambda scores: 1 / (1 + torch.exp(-scores))), "unknown"),
        (Branching, "unknown"),
    ],
)
def test_the_last_step_says_what_the_outputs_are(make: Callable[[], Any], end: str) -> None:
    assert torch_function(make().eval()).end == end


@pytest.mark.parametrize("end", [(), (nn.Sigmoid(),)])
def test_a_smooth_module_is_counted_as_it_decides(end: tuple[Any, ...]) -> None:
    with pytest.warns(CountedModelWarning, match="exp"):
        scorer = feta.read_model(smooth(*end), SPACE)
    model = Model(SPACE, scorer)
    expected = by_hand(ROWS) >= 0
    assert scorer.provenance == "counted"
    assert (model.decide(ROWS) == expected).all()
    assert feta.tally(model, ROWS[:1]).favorable.tolist() == [expected.sum()]
    assert (feta.runtime_of(smooth(*end), model)(ROWS) == expected).all()


def test_exact_reading_refuses_a_smooth_module() -> None:
    with pytest.raises(NetworkError, match="exp"):
        feta.read_model(smooth(), SPACE, method="exact")


def test_outputs_between_0_and_1_of_an_unknown_last_step_are_refused() -> None:
    module = Squeezed(lambda scores: 1 / (1 + torch.exp(-scores))).eval()
    with pytest.raises(NetworkError, match="has outputs of unknown meaning: got numbers between"):
        feta.read_model(module, SPACE)


def test_a_module_in_training_mode_is_refused() -> None:
    module = smooth(nn.Dropout(0.5)).train()
    with pytest.raises(NetworkError, match="not in evaluation mode"):
        feta.read_model(module, SPACE)


def test_probabilities_of_two_outcomes_add_up_and_have_a_precision() -> None:
    function = torch_function(smooth(nn.Sigmoid()))
    answers = function(ROWS)
    np.testing.assert_allclose(answers.sum(axis=1), 1)
    np.testing.assert_allclose(answers[:, 1], 1 / (1 + np.exp(-by_hand(ROWS))), rtol=1e-6)
    assert function.rounding == AGREEMENT_NETWORK_FLOAT32
    assert torch_function(smooth().double()).rounding is None


def opened(folder: Path, module: Any, decision: str, suffix: str = "pt") -> Model:  # noqa: ANN401 - torch is an extra
    """Open a network with a schema, as a command does; the network takes scaled columns."""
    path, schema = folder / f"network.{suffix}", folder / "schema.toml"
    schema.write_text(SCHEMA.format(decision=decision))
    if suffix == "pt":
        torch.save(module, path)
    else:
        axes = {"rows": {0: "n"}, "out": {0: "n"}}
        names: dict[str, Any] = {"input_names": ["rows"], "output_names": ["out"]}
        rows = (torch.zeros(2, 4),)
        torch.onnx.export(module, rows, str(path), dynamo=False, dynamic_axes=axes, **names)
    options = SourceOptions(trust_pickle=True)
    loaded = open_any(ModelOrigin(path), Opening(schema), options)
    assert loaded.model.scorer.provenance == "counted"
    assert "network" in loaded.notes[0]
    assert "is counted, not proved: " in loaded.notes[0]
    return loaded.model


def scaled(rows: Matrix) -> Matrix:
    """Scale the age as the schema says."""
    return (rows - [2, 0, 0, 0]) / [0.5, 1, 1, 1]


@pytest.mark.parametrize("suffix", ["pt", "onnx"])
@pytest.mark.parametrize("probability", [0.5, 0.3])
@pytest.mark.filterwarnings("ignore")  # of torch's exporter
def test_a_threshold_of_the_schema_applies_to_probabilities(
    suffix: str, probability: float, tmp_path: Path
) -> None:
    if suffix == "onnx":
        pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    model = opened(tmp_path, smooth(nn.Sigmoid()), f"threshold = {probability}", suffix)
    expected = 1 / (1 + np.exp(-by_hand(scaled(ROWS)))) >= probability
    assert 0 < expected.sum() < len(expected)
    assert (model.decide(ROWS) == expected).all()


def test_a_network_without_probabilities_has_only_the_threshold_of_a_half(tmp_path: Path) -> None:
    model = opened(tmp_path, smooth(), "threshold = 0.5")
    assert (model.decide(ROWS) == (by_hand(scaled(ROWS)) >= 0)).all()
    model = opened(tmp_path, smooth(), "score = 0.25")
    assert (model.decide(ROWS) == (by_hand(scaled(ROWS)) >= 0.25)).all()
    with pytest.raises(SchemaError, match=r"gives no probabilities: got threshold = 0\.3; expe"):
        opened(tmp_path, smooth(), "threshold = 0.3")


def test_scaling_is_applied_before_the_network() -> None:
    function = NetworkFunction(
        "a sum", lambda rows: rows.sum(axis=1, keepdims=True), "scores", False
    )
    answers = function.scaled(np.array([1.0, 2.0]), np.array([2.0, 4.0]))(np.array([[5.0, 10.0]]))
    assert answers.tolist() == [[4.0]]
