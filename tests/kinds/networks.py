"""Networks of torch, skorch and Keras, models of statsmodels, scorecards and functions."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from feta import Threshold, read_scorecard
from feta.arrays import Array
from tests.kinds.estimators import columns
from tests.kinds.kind import Build, Built, Kind, Predict, Source, above, flat, number, several, two
from tests.kinds.people import AMOUNT, AMOUNTS, MERIT, SPACE, TABLE, THREE, YES, numbers

Module = Any  # of torch, which may not be installed
Decide = Callable[[Source, Predict], Built]


def logit(source: Source, outputs: Predict) -> Built:
    """Return a network that is favorable if its score is at least 0."""
    return two(source, lambda frame: flat(outputs(frame)) >= 0)


def probability(source: Source, outputs: Predict) -> Built:
    """Return a network that is favorable if its probability is at least a half."""
    return two(source, lambda frame: flat(outputs(frame)) >= 0.5)


def largest(source: Source, outputs: Predict) -> Built:
    """Return a network that decides for the class with the largest output."""
    return several(source, lambda frame: np.argmax(np.asarray(outputs(frame)), axis=1))


def torch_outputs(module: Module) -> Predict:
    """Return the module's own outputs on rows in numbers."""
    import torch

    def outputs(frame: pd.DataFrame) -> Array:
        with torch.no_grad():
            return np.asarray(module(torch.from_numpy(numbers(frame)).float()).numpy())

    return outputs


def trained(module: Module, outputs: int = 1) -> Module:
    """Train a module briefly on the table."""
    import torch
    from torch import nn

    rows = torch.from_numpy(numbers(TABLE)).float()
    target = torch.from_numpy(YES if outputs == 1 else THREE)
    optimizer = torch.optim.Adam(module.parameters(), lr=0.05)
    for _ in range(60):
        optimizer.zero_grad()
        scores = module(rows)
        one = outputs == 1
        loss = nn.BCEWithLogitsLoss() if one else nn.CrossEntropyLoss()
        loss(scores[:, 0] if one else scores, target.float() if one else target).backward()
        optimizer.step()
    return module.eval()


def sequential(activation: str, outputs: int = 1, end: str = "") -> Module:
    """Make a small network on rows in numbers."""
    import torch
    from torch import nn

    torch.manual_seed(3)
    layers = [nn.BatchNorm1d(8), nn.Linear(8, 6), getattr(nn, activation)(), nn.Linear(6, outputs)]
    module = trained(nn.Sequential(*layers), outputs)
    return nn.Sequential(*module, getattr(nn, end)()).eval() if end else module


def residual() -> Module:
    """Make a network with a skip connection."""
    import torch
    from torch import nn

    class Residual(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale, self.first = nn.BatchNorm1d(8), nn.Linear(8, 6)
            self.inner, self.last = nn.Linear(6, 6), nn.Linear(6, 1)

        def forward(self, rows: torch.Tensor) -> torch.Tensor:
            hidden = torch.relu(self.first(self.scale(rows)))
            scores: torch.Tensor = self.last(hidden + torch.relu(self.inner(hidden)))
            return scores

    torch.manual_seed(3)
    return trained(Residual())


def towers() -> Module:
    """Make a network of two towers whose outputs are joined."""
    import torch
    from torch import nn

    class Towers(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.BatchNorm1d(8)
            self.left, self.right, self.last = nn.Linear(8, 4), nn.Linear(8, 4), nn.Linear(8, 1)

        def forward(self, rows: torch.Tensor) -> torch.Tensor:
            rows = self.scale(rows)
            towers = [torch.relu(self.left(rows)), torch.tanh(self.right(rows))]
            scores: torch.Tensor = self.last(torch.cat(towers, dim=1))
            return scores

    torch.manual_seed(3)
    return trained(Towers())


def normalized() -> Module:
    """Make a network with a layer norm."""
    import torch
    from torch import nn

    torch.manual_seed(3)
    layers = [nn.BatchNorm1d(8), nn.Linear(8, 6), nn.LayerNorm(6), nn.ReLU(), nn.Linear(6, 1)]
    return trained(nn.Sequential(*layers))


def _torch(name: str, make: Callable[[], Module], decide: Decide) -> Kind:
    def build(folder: Path) -> Built:
        del folder
        module = make()
        return decide(module, torch_outputs(module))

    return Kind("torch", name, build, ("torch",))


def _skorch(folder: Path) -> Built:
    import torch
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer
    from skorch import NeuralNetBinaryClassifier

    del folder
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(7, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
    net = NeuralNetBinaryClassifier(module, max_epochs=10, lr=0.5, verbose=0, train_split=None)
    steps = make_pipeline(columns(), FunctionTransformer(np.float32), net)
    return two(steps.fit(TABLE, YES.astype(np.float32)))


def keras_model(activation: str) -> Source:
    """Make a small model of Keras that ends in a sigmoid."""
    os.environ.setdefault("KERAS_BACKEND", "torch")
    import keras

    keras.utils.set_random_seed(0)
    normal = keras.layers.Normalization()
    normal.adapt(numbers(TABLE))
    dense = keras.layers.Dense
    inner, last = dense(6, activation, name="hidden"), dense(1, "sigmoid", name="last")
    model = keras.Sequential([keras.Input((8,)), normal, inner, last])
    model.compile(keras.optimizers.Adam(0.1), "binary_crossentropy")
    model.fit(numbers(TABLE), YES, epochs=8, batch_size=40, verbose=0)
    return model


def keras_network(activation: str, ending: str = "") -> Build:
    """Return a model of Keras, or its file."""

    def build(folder: Path) -> Built:
        model = keras_model(activation)
        path = folder / f"model.{ending}"
        if ending:
            model.save(path)
        source = path if ending else model
        return probability(source, lambda frame: model.predict(numbers(frame), verbose=0))

    return build


def _statsmodels(make: Callable[[Any, Any, pd.DataFrame], Built]) -> Build:
    def build(folder: Path) -> Built:
        import statsmodels.api as sm
        import statsmodels.formula.api as smf

        del folder
        return make(sm, smf, TABLE.assign(yes=YES, merit=MERIT, amount=AMOUNTS))

    return build


FORMULA = "age + C(sex) + C(job)"


def _ols(sm: Any, smf: Any, data: pd.DataFrame) -> Built:  # noqa: ANN401 - no types
    del sm
    return number(smf.ols(f"merit ~ {FORMULA}", data).fit())


def _logit(sm: Any, smf: Any, data: pd.DataFrame) -> Built:  # noqa: ANN401 - no types
    del sm
    results = smf.logit(f"yes ~ {FORMULA}", data).fit(disp=0)
    return above(results, results.predict, Threshold.at_probability(0.5), 0.5)


def _glm(sm: Any, smf: Any, data: pd.DataFrame) -> Built:  # noqa: ANN401 - no types
    family = sm.families.Gamma(sm.families.links.Log())
    results = smf.glm(f"amount ~ {FORMULA}", data, family=family).fit()
    return above(results, results.predict, Threshold.at_prediction(AMOUNT), AMOUNT)


CARD = {
    "age": {"< 20": 10, "[20, 23)": 22, ">= 23": 31},
    "sex": {"female": 3, "male": 8},
    "income": {"< 4": 0, "[4, 7)": 12, ">= 7": 20, "missing": 6},
    "job": {"none": -7, "else": 5},
}


def points(frame: pd.DataFrame) -> Array:
    """Return the points of the scorecard, by conditions."""
    income = frame["income"]
    total = np.select([frame["age"] < 20, frame["age"] < 23], [10, 22], 31)
    total += np.where(frame["sex"] == "male", 8, 3)
    total += np.select([income.isna(), income < 4, income < 7], [6, 0, 12], 20)
    return np.asarray(total + np.where(frame["job"] == "none", -7, 5))


def _scorecard(folder: Path) -> Built:
    del folder
    return above(read_scorecard(CARD, SPACE), points, Threshold(45.5), 45.5)


def formula(frame: pd.DataFrame) -> Array:
    """Score people: code of a user."""
    return np.asarray(points(frame) * np.sqrt(frame["age"]) - 200.5)


def approve(frame: pd.DataFrame) -> Array:
    """Decide people: code of a user."""
    return formula(frame) > 0


class Service:
    """An object with nothing but predict."""

    def predict(self, frame: pd.DataFrame) -> Array:
        """Return 0 or 1."""
        return approve(frame).astype(int)


def _function(source: Source, predict: Predict) -> Build:
    def build(folder: Path) -> Built:
        del folder
        return two(source, predict)

    return build


KERAS = ("torch", "keras", "h5py")
KINDS = (
    _torch("ReLU, one score", lambda: sequential("ReLU"), logit),
    _torch("ReLU, a last sigmoid", lambda: sequential("ReLU", end="Sigmoid"), probability),
    _torch("Leaky ReLU, several classes", lambda: sequential("LeakyReLU", 3), largest),
    _torch("tanh, one score", lambda: sequential("Tanh"), logit),
    _torch("GELU, a last sigmoid", lambda: sequential("GELU", end="Sigmoid"), probability),
    _torch("SiLU, several classes", lambda: sequential("SiLU", 3), largest),
    _torch("A skip connection", residual, logit),
    _torch("Two towers", towers, logit),
    _torch("Layer norm", normalized, logit),
    Kind("skorch", "NeuralNetBinaryClassifier", _skorch, ("torch", "skorch")),
    Kind("Keras", "ReLU", keras_network("relu"), KERAS),
    Kind("Keras", "tanh", keras_network("tanh"), KERAS),
    Kind("statsmodels", "OLS, formula", _statsmodels(_ols), ("statsmodels",)),
    Kind("statsmodels", "Logit, formula", _statsmodels(_logit), ("statsmodels",)),
    Kind("statsmodels", "GLM, gamma with log link", _statsmodels(_glm), ("statsmodels",)),
    Kind("Scorecard", "Points per bin", _scorecard),
    Kind("Function", "Scores", _function(formula, approve)),
    Kind("Function", "Decisions", _function(approve, approve)),
    Kind("Function", "An object with predict", _function(Service(), approve)),
)
