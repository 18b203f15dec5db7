"""Files written by Keras, read without it and compared with its predict."""

import pytest

pytest.importorskip("h5py", reason="h5py is not installed")

import io
import json
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from feta import MissingExtra, NetworkError, read_keras
from feta.arrays import Matrix
from feta.scorer.network.agreement import Squash, squashed

RNG = np.random.default_rng(2)
Keras = Any  # the package or one of its models; it has no types


def randomize(model: Keras) -> Keras:
    """Fill every array with random numbers."""
    arrays = [
        RNG.uniform(0.2, 1.5, size=array.shape) * RNG.choice([1, 1, -1])
        if "variance" not in str(path.name)
        else RNG.uniform(0.5, 2, size=array.shape)
        for array, path in zip(model.get_weights(), model.weights, strict=True)
    ]
    model.set_weights(arrays)
    return model


def chain(keras: Keras) -> Keras:
    layers = keras.layers
    return randomize(
        keras.Sequential(
            [
                keras.Input((4,)),
                layers.Normalization(mean=[1.0, 2.0, 3.0, 4.0], variance=[1.0, 4.0, 9.0, 2.0]),
                layers.Rescaling(0.5, offset=0.25),
                layers.Dense(6, activation="relu", name="first"),
                layers.BatchNormalization(),
                layers.Dropout(0.2),
                layers.Dense(5, use_bias=False),
                layers.LeakyReLU(negative_slope=0.125),
                layers.Dense(4, activation=layers.ReLU(max_value=6.0, negative_slope=0.25)),
                layers.PReLU(),
                layers.Dense(4, activation="hard_sigmoid"),
                layers.Activation("relu6"),
                layers.Dense(1, activation="sigmoid"),
            ]
        )
    )


def blocks(keras: Keras) -> Keras:
    layers = keras.layers
    numbers, kind = keras.Input((3,), name="numbers"), keras.Input((1,), name="kind", dtype="int32")
    embedded = layers.Flatten()(layers.Embedding(5, 2)(kind))
    joined = layers.Concatenate()([embedded, layers.BatchNormalization()(numbers)])
    hidden = layers.Activation("leaky_relu")(layers.Dense(6)(joined))
    return randomize(keras.Model([numbers, kind], layers.Dense(3, activation="softmax")(hidden)))


def draw_rows(embedded: int) -> Matrix:
    drawn = RNG.normal(size=(80, 4)).astype(np.float32).astype(np.float64)
    if embedded:
        drawn[:, 3] = RNG.integers(0, embedded, 80)
    return drawn


@pytest.mark.filterwarnings("ignore")  # of Keras
@pytest.mark.parametrize("ending", ["keras", "h5"])
@pytest.mark.parametrize(("make", "kind"), [(chain, "sigmoid"), (blocks, "softmax")])
def test_a_file_is_read_with_the_scores_of_keras(
    make: Callable[[Keras], Keras],
    kind: Squash,
    ending: str,
    keras: Keras,
    tmp_path: Path,
) -> None:
    model = make(keras)
    path = tmp_path / f"model.{ending}"
    model.save(path)
    network = read_keras(path)
    assert network.sigmoid
    assert network.source == "float32"
    people = draw_rows(5 if make is blocks else 0)
    float32_people = people.astype(np.float32)
    inputs = (
        [float32_people[:, :3], float32_people[:, 3:].astype(np.int32)]
        if make is blocks
        else float32_people
    )
    expected = np.asarray(model.predict(inputs, verbose=0))
    np.testing.assert_allclose(squashed(network(people), kind), expected, atol=2e-6)
    assert [(table.column, len(table.numbers)) for table in network.first.tables] == (
        [(3, 5)] if make is blocks else []
    )


def save_file(
    folder: Path,
    layers: list[dict[str, Any]],
    *,
    edit: Callable[[h5py.File], None] = lambda _: None,
    kind: str = "Sequential",
) -> Path:
    """Write a .keras file without Keras: Dense layers of 2 and 1 neurons, and other listed ones."""
    config = {"class_name": kind, "config": {"layers": layers}}
    weights = io.BytesIO()
    with h5py.File(weights, "w") as file:
        for index, entry in enumerate(layers):
            group = file.create_group(f"layers/layer{index}/vars")
            group.attrs["name"] = entry["config"]["name"]
            if entry["class_name"] == "Dense":
                group["0"] = np.ones((2, 2 if index < 2 else 1), dtype=np.float32)
                group["1"] = np.zeros(2 if index < 2 else 1, dtype=np.float32)
        edit(file)
    path = folder / "model.keras"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("config.json", json.dumps(config))
        archive.writestr("metadata.json", json.dumps({"keras_version": "3.15.1"}))
        archive.writestr("model.weights.h5", weights.getvalue())
    return path


def layer(kind: str, **config: object) -> dict[str, Any]:
    return {"class_name": kind, "config": {"name": kind.lower()} | config}


INPUT = layer("InputLayer", batch_shape=[None, 2])
FIRST = layer("Dense", name="one", activation="relu")


def add_external_link(file: h5py.File) -> None:
    del file["layers/layer1/vars/0"]
    file["layers/layer1/vars/0"] = h5py.ExternalLink("/etc/hostname", "/x")


@pytest.mark.parametrize(
    ("layers", "options", "message"),
    [
        (
            [INPUT, layer("Dense", activation="exponential"), layer("Dense", name="last")],
            {},
            "has an unknown activation: got 'exponential'; expected relu",
        ),
        (
            [INPUT, FIRST, layer("LayerNormalization")],
            {},
            r"layer 'layernormalization' \(LayerNormalization\) is not supported; expected "
            r"InputLayer, Dense",
        ),
        (
            [layer("InputLayer", batch_shape=[None, 2, 2]), FIRST],
            {},
            r"the input 'inputlayer' has an unsupported shape: got \[None, 2, 2\]; expected rows",
        ),
        (
            [INPUT, layer("ReLU", threshold=1.0)],
            {},
            "has an unsupported threshold: got 1.0; expected 0",
        ),
        (
            [INPUT, layer("Normalization", axis=-1), FIRST],
            {},
            "is not adapted; call its adapt before the model is saved",
        ),
        (
            [INPUT, FIRST],
            {"kind": "MyModel"},
            r"an unsupported class: got 'MyModel', whose code is not in the file; expected a "
            r"Sequential",
        ),
        (
            [INPUT, FIRST],
            {"edit": add_external_link},
            "holds a link instead of '0'; expected the data itself",
        ),
        (
            [INPUT, layer("Dense", name="other")],
            {"edit": lambda file: file["layers/layer1/vars"].attrs.__setitem__("name", "x")},
            r"layer 'other' \(Dense\) lacks weights in the file: got",
        ),
        (
            [INPUT, layer("Activation")],
            {},
            r"model.keras: the file is not a complete .keras or .h5 model: got KeyError; "
            r"expected one",
        ),
    ],
)
def test_an_unsupported_layer_is_refused_by_name(
    layers: list[dict[str, Any]], options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(NetworkError, match=message):
        read_keras(save_file(tmp_path, layers, **options))


def test_weights_without_a_model_are_refused(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "model.h5", "w") as file:
        file["layer"] = np.ones(3)
    with pytest.raises(NetworkError, match="holds weights only; expected a whole model"):
        read_keras(tmp_path / "model.h5")


def test_a_missing_h5py_names_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save_file(tmp_path, [INPUT, FIRST])
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(
        MissingExtra, match=r"h5py is not installed; pip install 'feta-fair\[keras\]'"
    ):
        read_keras(path)
