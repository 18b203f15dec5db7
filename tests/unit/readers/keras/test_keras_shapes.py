"""Keras models with embeddings, shapes and single layers that are easily misread."""

import pytest

pytest.importorskip("h5py", reason="h5py is not installed")

from pathlib import Path
from typing import Any

import numpy as np

from feta import NetworkError, read_keras
from feta.readers.keras.evaluation import KerasEvaluator
from feta.readers.keras.file import load_keras
from tests.unit.readers.keras.models import (
    CODES,
    NUMBERS,
    Keras,
    Make,
    assert_read,
    model_of,
    rewrite,
    save_model,
    scores,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # of Keras
    pytest.mark.usefixtures("one_program"),
]


def joined_model(keras: Keras, axis: int) -> Keras:
    layers = keras.layers
    first, second = keras.Input((2,), name="one"), keras.Input((2,), name="other")
    looked_up = [layers.Embedding(5, 3)(first), layers.Embedding(5, 3)(second)]
    flat = layers.Flatten()(layers.Concatenate(axis=axis)(looked_up))
    return keras.Model([first, second], layers.Dense(2)(flat))


def reshaped_model(keras: Keras, *between: Keras) -> Keras:
    input_ = keras.Input((4,))
    value = keras.layers.Embedding(5, 3)(input_)
    for layer in between:
        value = layer(value)
    return keras.Model(input_, keras.layers.Dense(2)(value))


def normalized_model(keras: Keras) -> Keras:
    layers = keras.layers
    norm = layers.Normalization(mean=[1.0, 2.0, 3.0], variance=[0.25, 4.0, 1.0])
    return reshaped_model(keras, norm, layers.Flatten())


SHAPES: list[Make] = [
    lambda keras: joined_model(keras, -1),
    lambda keras: joined_model(keras, 1),
    lambda keras: reshaped_model(keras, keras.layers.Flatten()),
    lambda keras: reshaped_model(keras, keras.layers.Flatten(data_format="channels_first")),
    lambda keras: reshaped_model(
        keras, keras.layers.Reshape((-1, 2)), keras.layers.Flatten(data_format="channels_first")
    ),
    normalized_model,
]


@pytest.mark.parametrize("make", SHAPES)
def test_embedded_columns_keep_the_order_of_keras(make: Make, keras: Keras, tmp_path: Path) -> None:
    model = make(keras)
    assert_read(model, save_model(model, tmp_path), CODES)


@pytest.mark.parametrize("make", SHAPES)
def test_layers_evaluated_one_by_one_keep_the_order_of_keras(
    make: Make, keras: Keras, tmp_path: Path
) -> None:
    model = make(keras)
    outputs = KerasEvaluator(load_keras(save_model(model, tmp_path)))(CODES)
    np.testing.assert_allclose(outputs, scores(model, CODES), atol=1e-5)


def test_embedded_columns_that_are_not_flattened_are_refused(keras: Keras, tmp_path: Path) -> None:
    model = reshaped_model(keras)
    with pytest.raises(
        NetworkError,
        match=r"several rows of values per person: got the shape \[4, 3\]; .* add a Flatten layer",
    ):
        read_keras(save_model(model, tmp_path))


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        (
            lambda layers: layers.Reshape((2, 3)),
            r"changes the shape: got \[2, 3\]; expected one row",
        ),
        (
            lambda layers: layers.Softmax(axis=0),
            "along an unsupported axis: got 0; expected the last axis",
        ),
    ],
)
def test_another_axis_is_refused(layer: Make, message: str, keras: Keras, tmp_path: Path) -> None:
    model = model_of(keras, keras.layers.Dense(6), layer(keras.layers))
    with pytest.raises(NetworkError, match=message):
        read_keras(save_model(model, tmp_path))


def test_an_input_that_keras_truncates_to_integers_is_refused_unless_embedded(
    keras: Keras, tmp_path: Path
) -> None:
    layers = keras.layers
    model = model_of(
        keras, layers.Embedding(5, 2), layers.Flatten(), layers.Dense(1), dtype="int32"
    )
    assert_read(model, save_model(model, tmp_path), CODES)
    model = model_of(keras, layers.Dense(1), dtype="int32", name="codes")
    message = (
        r"the input 'codes' of int32 is truncated to integers: got layer '\w+' "
        r"\(Dense\) after it; expected an Embedding"
    )
    with pytest.raises(NetworkError, match=message):
        read_keras(save_model(model, tmp_path))


def test_a_normalization_has_the_least_divisor_of_keras(keras: Keras, tmp_path: Path) -> None:
    norm = keras.layers.Normalization(mean=[0.0] * 4, variance=[1e-16, 0.0, 1.0, 4.0])
    model = model_of(keras, norm, keras.layers.Dense(1))
    assert_read(model, save_model(model, tmp_path), NUMBERS)


@pytest.mark.parametrize("ending", ["keras", "h5"])
def test_an_adapted_normalization_of_a_constant_column_is_read(
    ending: str, keras: Keras, tmp_path: Path
) -> None:
    norm = keras.layers.Normalization()
    norm.adapt(np.array([[1, 2, 3, 4], [1, 3, 5, 7]], dtype=np.float32))
    model = keras.Sequential([keras.Input((4,)), norm, keras.layers.Dense(1)])
    assert_read(model, save_model(model, tmp_path, ending), NUMBERS)


@pytest.mark.parametrize("ending", ["keras", "h5"])
@pytest.mark.parametrize("kind", ["Dropout", "BatchNormalization"])
def test_a_layer_called_in_training_mode_is_refused(
    kind: str, ending: str, keras: Keras, tmp_path: Path
) -> None:
    layer = getattr(keras.layers, kind)(**{"rate": 0.5} if kind == "Dropout" else {}, name="x")
    input_ = keras.Input((4,))
    model = keras.Model(input_, keras.layers.Dense(1)(layer(input_, training=True)))
    with pytest.raises(
        NetworkError,
        match=r"layer 'x' .* called with further arguments, such as training=True; "
        r"expected its inputs alone",
    ):
        read_keras(save_model(model, tmp_path, ending))


@pytest.mark.parametrize("training", [True, False])
def test_a_call_in_training_mode_is_detected_in_files_of_keras_2(
    training: bool, keras: Keras, tmp_path: Path
) -> None:
    input_ = keras.Input((4,), name="entry")
    value = keras.layers.Dropout(0.5, name="x")(input_, training=False)
    model = keras.Model(input_, keras.layers.Dense(1)(value))
    path = save_model(model, tmp_path)

    def as_keras_2(content: dict[str, Any]) -> None:
        layer = next(layer for layer in content["config"]["layers"] if layer["name"] == "x")
        layer["inbound_nodes"] = [[["entry", 0, 0, {"training": training}]]]

    rewrite(path, "config.json", as_keras_2)
    if not training:
        assert_read(model, path, NUMBERS)
        return
    with pytest.raises(NetworkError, match=r"layer 'x' .* inputs alone"):
        read_keras(path)


@pytest.mark.parametrize("number", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("index", [0, 4, 5])
def test_weights_that_are_not_finite_are_refused(
    index: int, number: float, keras: Keras, tmp_path: Path
) -> None:
    layers = keras.layers
    model = model_of(keras, layers.Dense(3), layers.BatchNormalization(), layers.Dense(1))
    weights = model.get_weights()
    weights[index].flat[0] = number
    model.set_weights(weights)
    with pytest.raises(NetworkError, match=r"layer '\w+' \(\w+\) has weights that are not finite"):
        read_keras(save_model(model, tmp_path))


def test_a_number_beyond_the_format_is_refused(keras: Keras, tmp_path: Path) -> None:
    model = model_of(keras, keras.layers.Rescaling(2.0, name="x"), keras.layers.Dense(1))
    path = save_model(model, tmp_path)
    rewrite(
        path,
        "config.json",
        lambda content: content["config"]["layers"][1]["config"].update(scale=1e99),
    )
    with pytest.raises(
        NetworkError, match=r"layer 'x' \(Rescaling\) has invalid values: got inf; expected numbers"
    ):
        read_keras(path)
