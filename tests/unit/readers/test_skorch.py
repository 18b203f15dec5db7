import pytest

pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("skorch", reason="skorch is not installed")

from typing import Any

import numpy as np
import skorch
import torch
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder, StandardScaler
from skorch import NeuralNetBinaryClassifier, NeuralNetClassifier, NeuralNetRegressor
from torch import Tensor, nn

import feta
from feta import Argmax, Categorical, FeatureSpace, Integer, Model, NetworkError, Real
from feta.arrays import Matrix
from feta.io.raw_table import RawTable
from feta.space.sampling import draw_people

SPACE = FeatureSpace(
    (
        Integer("age", 18, 60, sensitive=True),
        Categorical("town", ("A", "B", "C")),
        Real("pay", 0, 9),
    )
)
PEOPLE = draw_people(SPACE, np.random.default_rng(0), 120)
TABLE = RawTable(SPACE, ("age", "town", "pay"))(PEOPLE)
GOOD = PEOPLE[:, 0] / 10 + PEOPLE[:, 4] > 8


class Embedded(nn.Module):
    """Two scaled numbers, and a category by its number."""

    def __init__(self, outputs: int = 1) -> None:
        super().__init__()
        self.town = nn.Embedding(3, 2)
        self.hidden = nn.Linear(4, 5)
        self.last = nn.Linear(5, outputs)

    def forward(self, x: Tensor) -> Tensor:
        joined = torch.cat([x[:, :2], self.town(x[:, 2].long())], dim=1)
        return self.last(torch.relu(self.hidden(joined)))


def fit_pipeline(kind: type, labels: object, **options: object) -> object:
    torch.manual_seed(0)
    net = kind(Embedded, max_epochs=3, verbose=0, train_split=None, **options)
    columns = make_column_transformer(
        (StandardScaler(), ["age", "pay"]), (OrdinalEncoder(), ["town"])
    )
    single = make_pipeline(columns, Float32(), net)
    return single.fit(TABLE, labels)


class Float32(StandardScaler):  # type: ignore[misc]  # scikit-learn ships no types
    """A cast to float32, which skorch needs; as a subclass it is code that FETA does not know."""

    def fit(self, table: Matrix, labels: object = None) -> "Float32":
        del labels
        self.n_features_in_ = np.shape(table)[1]
        self.mean_ = np.zeros(1)
        return self

    def transform(self, table: Matrix) -> object:
        return np.asarray(table, dtype=np.float32)


@pytest.mark.filterwarnings("ignore")  # of skorch
def test_modules_wrapped_by_skorch_are_read_in_pipelines() -> None:
    binary = fit_pipeline(NeuralNetBinaryClassifier, GOOD.astype(np.float32))
    model = Model(SPACE, feta.read_sklearn(binary, SPACE))
    assert model.network.equality == "below"
    assert model.network.provenance == "sampled"
    decisions = binary.predict(TABLE).astype(bool)  # type: ignore[attr-defined]
    assert (model.decide(PEOPLE) == decisions).all()
    options = {"module__outputs": 3, "criterion": nn.CrossEntropyLoss}
    several = fit_pipeline(NeuralNetClassifier, np.digitize(PEOPLE[:, 4], [3, 6]), **options)
    classes = Model(SPACE, feta.read_sklearn(several, SPACE), Argmax(("0", "1", "2")))
    assert (classes.decide(PEOPLE) == several.predict(TABLE)).all()  # type: ignore[attr-defined]


@pytest.mark.filterwarnings("ignore")  # of skorch
def test_a_module_that_skorch_decides_differently_is_refused() -> None:
    net = NeuralNetBinaryClassifier(
        Embedded, max_epochs=1, verbose=0, train_split=None, threshold=0.3
    )
    with pytest.raises(NetworkError, match="NeuralNetBinaryClassifier is not fitted; call its fit"):
        feta.read_sklearn(net)
    rows = np.column_stack([PEOPLE[:, :2], np.argmax(PEOPLE[:, 1:4], axis=1)]).astype(np.float32)
    net.fit(rows, GOOD.astype(np.float32))
    with pytest.raises(
        NetworkError, match=r"threshold: got 1 and 0\.3; expected one output and the threshold 0\.5"
    ):
        feta.read_sklearn(net)
    regressor = NeuralNetRegressor(Embedded, max_epochs=1, verbose=0, train_split=None)
    regressor.fit(rows, PEOPLE[:, 4:5].astype(np.float32))
    scores = feta.read_sklearn(regressor)(rows.astype(np.float64))
    np.testing.assert_allclose(scores, regressor.predict(rows), rtol=1e-4, atol=1e-4)


class OneLayer(nn.Module):
    """A module with one layer and a last activation."""

    def __init__(self, end: nn.Module, outputs: int = 1) -> None:
        super().__init__()
        self.layer, self.end, self.outputs = nn.Linear(5, outputs), end, outputs

    def forward(self, x: Tensor) -> Tensor:
        return self.end(self.layer(x).reshape(-1, self.outputs)).squeeze(-1)


class Weighted(nn.BCEWithLogitsLoss):
    """A custom criterion, which skorch treats as its base class."""


class Clamping(skorch.dataset.Dataset):  # type: ignore[misc]  # skorch ships no types
    """A dataset that changes the rows."""

    def transform(self, X: Matrix, y: object) -> object:  # noqa: N803 - skorch's name
        return super().transform(np.clip(X, -1, 1), y)


def shifted_probabilities(scores: Tensor) -> Tensor:
    probability = torch.sigmoid(scores - 2)
    return torch.stack((1 - probability, probability), 1)


def fit_module(kind: type, end: nn.Module, outputs: int = 1, **options: object) -> Any:  # noqa: ANN401
    """Return an estimator with one layer and a last activation, after one epoch."""
    torch.manual_seed(0)
    options = {"max_epochs": 1, "verbose": 0, "train_split": None, **options}
    net = kind(OneLayer, module__end=end, module__outputs=outputs, **options)
    label_type = np.int64 if kind is NeuralNetClassifier else np.float32
    return net.fit(PEOPLE.astype(np.float32) / 9, GOOD.astype(label_type))


@pytest.mark.filterwarnings("ignore")  # of skorch
@pytest.mark.parametrize(
    ("kind", "end", "options", "message"),
    [
        (NeuralNetBinaryClassifier, nn.Sigmoid(), {}, "got BCEWithLogitsLoss with sigmoid"),
        (
            NeuralNetBinaryClassifier,
            nn.Sigmoid(),
            {"criterion": Weighted},
            "got BCEWithLogitsLoss with sigmoid",
        ),
        (
            NeuralNetBinaryClassifier,
            nn.Hardsigmoid(),
            {"criterion": nn.BCELoss},
            "got BCELoss with plain scores",
        ),
        (
            NeuralNetBinaryClassifier,
            nn.Identity(),
            {"predict_nonlinearity": shifted_probabilities},
            "predict_nonlinearity: got <function shifted_probabilities .*; expected 'auto'",
        ),
        (
            NeuralNetBinaryClassifier,
            nn.Identity(),
            {"dataset": Clamping},
            r"has a custom dataset, .*: got one from .*test_skorch",
        ),
        (
            NeuralNetClassifier,
            nn.Softmax(1),
            {"criterion": nn.CrossEntropyLoss, "outputs": 2},
            "got CrossEntropyLoss with softmax",
        ),
        (NeuralNetRegressor, nn.Sigmoid(), {}, "got another criterion with sigmoid"),
        (
            NeuralNetRegressor,
            nn.Identity(),
            {"criterion": nn.BCEWithLogitsLoss},
            "got BCEWithLogitsLoss with plain scores",
        ),
    ],
)
def test_a_last_layer_that_does_not_match_its_criterion_is_refused(
    kind: type, end: nn.Module, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(NetworkError, match=message):
        feta.read_sklearn(fit_module(kind, end, **options))


@pytest.mark.filterwarnings("ignore")  # of skorch
@pytest.mark.parametrize(
    ("kind", "end", "options"),
    [
        (NeuralNetBinaryClassifier, nn.Identity(), {}),
        (NeuralNetBinaryClassifier, nn.Identity(), {"criterion": Weighted}),
        (NeuralNetBinaryClassifier, nn.Sigmoid(), {"criterion": nn.BCELoss}),
        (NeuralNetClassifier, nn.Identity(), {"criterion": nn.CrossEntropyLoss, "outputs": 2}),
        (NeuralNetClassifier, nn.LogSoftmax(1), {"criterion": nn.CrossEntropyLoss, "outputs": 2}),
        (NeuralNetClassifier, nn.Softmax(1), {"outputs": 2}),
    ],
)
def test_a_last_layer_that_matches_its_criterion_is_read(
    kind: type, end: nn.Module, options: dict[str, Any]
) -> None:
    net = fit_module(kind, end, **options)
    rows = np.random.default_rng(3).normal(size=(120, 5)).astype(np.float32)
    scores = feta.read_sklearn(net)(rows.astype(np.float64))
    decisions = scores[:, -1] > (0 if len(scores[0]) == 1 else scores[:, 0])
    assert 0 < decisions.sum() < len(rows)
    np.testing.assert_array_equal(decisions, net.predict(rows) == 1)


@pytest.mark.filterwarnings("ignore")  # of skorch
@pytest.mark.parametrize("kind", [NeuralNetBinaryClassifier, NeuralNetRegressor])
def test_predictions_of_skorch_are_compared(kind: type) -> None:
    net = fit_module(kind, nn.Identity())
    inner = net.infer
    net.infer = lambda x, **options: inner(x.clamp(-10, 10), **options)  # unseen near 0
    with pytest.raises(
        NetworkError,
        match=r"FETA's (decisions differ from .*predict: got|scores differ from)",
    ):
        feta.read_sklearn(net)
