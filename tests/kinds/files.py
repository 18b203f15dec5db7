"""Model files on disk."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline

from feta.arrays import Array
from tests.kinds.boosted import catboost, lightgbm, xgboost
from tests.kinds.estimators import FEW, LOGISTIC, columns
from tests.kinds.kind import Built, Kind, two
from tests.kinds.networks import (
    keras_network,
    logit,
    probability,
    sequential,
    torch_outputs,
)
from tests.kinds.people import TABLE, WORDS, YES, native, numbers


def _xgboost(folder: Path, *, ending: str) -> Built:
    model, path = xgboost("XGBClassifier", YES), folder / f"model.{ending}"
    model.save_model(path)
    return two(path, lambda frame: model.predict(native(frame)))


def _lightgbm(folder: Path) -> Built:
    model, path = lightgbm("LGBMClassifier", YES), folder / "model.txt"
    model.booster_.save_model(path)
    return two(path, lambda frame: model.predict(native(frame)))


def _catboost(folder: Path, *, ending: str) -> Built:
    model, path = catboost("CatBoostClassifier", YES), folder / f"model.{ending}"
    model.save_model(str(path), format=ending)
    return two(path, model.predict)


def _pipeline() -> Any:  # noqa: ANN401 - scikit-learn ships no types
    return make_pipeline(columns(), clone(LOGISTIC)).fit(TABLE, WORDS)


def _skops(folder: Path) -> Built:
    import skops.io

    model, path = _pipeline(), folder / "model.skops"
    skops.io.dump(model, path)
    return two(path, model.predict, "yes")


def _joblib(folder: Path) -> Built:
    import joblib

    joblib.dump(_pipeline(), folder / "model.joblib")
    return two(joblib.load(folder / "model.joblib"), positive="yes")


def _pickled_module(folder: Path) -> Built:
    import torch

    torch.save(sequential("ReLU"), folder / "model.pt")
    module = torch.load(folder / "model.pt", weights_only=False)
    return logit(module, torch_outputs(module))


def _session(path: Path) -> Callable[[pd.DataFrame], Array]:
    """Return the first output of a graph, in onnxruntime."""
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name

    def run(frame: pd.DataFrame) -> Array:
        return np.asarray(session.run(None, {name: numbers(frame).astype(np.float32)})[0])

    return run


def _onnx_trees(folder: Path) -> Built:
    from skl2onnx import to_onnx

    rows = numbers(TABLE).astype(np.float32)
    forest = RandomForestClassifier(**FEW).fit(rows, YES)
    path = folder / "trees.onnx"
    graph = to_onnx(forest, rows[:1], options={"zipmap": False})
    path.write_bytes(graph.SerializeToString())
    return two(path, _session(path))


def _onnx_network(folder: Path, *, activation: str, end: str = "") -> Built:
    import torch

    path, rows = folder / "network.onnx", torch.zeros(2, 8)
    names: dict[str, Any] = {"input_names": ["rows"], "output_names": ["out"]}
    axes = {"rows": {0: "n"}, "out": {0: "n"}}
    module = sequential(activation, end=end)
    torch.onnx.export(module, (rows,), str(path), dynamo=False, dynamic_axes=axes, **names)
    return (probability if end else logit)(path, _session(path))


def _file(name: str, build: Callable[..., Built], *packages: str, **options: str) -> Kind:
    return Kind("Files", name, partial(build, **options), packages)


NETWORK = ("torch", "onnx", "onnxruntime")
KINDS = (
    _file("XGBoost, `.json`", _xgboost, "xgboost", ending="json"),
    _file("XGBoost, `.ubj`", _xgboost, "xgboost", ending="ubj"),
    _file("LightGBM, `.txt`", _lightgbm, "lightgbm"),
    _file("CatBoost, `.cbm`", _catboost, "catboost", ending="cbm"),
    _file("CatBoost, `.json`", _catboost, "catboost", ending="json"),
    _file("scikit-learn, `.skops`", _skops, "skops"),
    _file("scikit-learn, `.joblib`, opened by its owner", _joblib),
    _file("torch, `.pt`, opened by its owner", _pickled_module, "torch"),
    _file("Keras, `.keras`", keras_network("relu", "keras"), "torch", "keras", "h5py"),
    _file("Keras, `.h5`", keras_network("relu", "h5"), "torch", "keras", "h5py"),
    _file("ONNX, trees", _onnx_trees, "onnxruntime", "skl2onnx"),
    _file("ONNX, ReLU", _onnx_network, *NETWORK, activation="ReLU"),
    _file("ONNX, tanh", _onnx_network, *NETWORK, activation="Tanh"),
    _file("ONNX, tanh and sigmoid", _onnx_network, *NETWORK, activation="Tanh", end="Sigmoid"),
)
