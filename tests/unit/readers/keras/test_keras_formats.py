"""Keras files with unusual formats, custom classes or older versions: read correctly or refused."""

import pytest

pytest.importorskip("h5py", reason="h5py is not installed")

from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from feta import NetworkError, read_keras
from tests.unit.readers.keras.models import (
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


@pytest.mark.parametrize("ending", ["keras", "h5"])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("mode", ["int8", "float8"])
def test_a_quantized_model_is_refused(
    mode: str, bias: bool, ending: str, keras: Keras, tmp_path: Path
) -> None:
    dense = keras.layers.Dense(3, use_bias=bias, name="first")
    model = model_of(keras, dense, keras.layers.Dense(1))
    model.quantize(mode)
    with pytest.raises(
        NetworkError,
        match=r"layer 'first' \(Dense\) has an unsupported dtype policy: got 'Quantized\w+'; "
        r"expected .*; save the model before it is quantized",
    ):
        read_keras(save_model(model, tmp_path, ending))


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16", "float16"])
def test_a_model_that_computes_in_a_shorter_format_is_refused(
    policy: str, keras: Keras, tmp_path: Path
) -> None:
    model = model_of(keras, keras.layers.Dense(1, name="last", dtype=policy))
    with pytest.raises(NetworkError, match=f"layer 'last' .* dtype policy: got '{policy}'"):
        read_keras(save_model(model, tmp_path))


def test_integers_are_refused_as_weights(keras: Keras, tmp_path: Path) -> None:
    path = save_model(model_of(keras, keras.layers.Dense(1, name="last")), tmp_path)

    def write_integers(file: h5py.File) -> None:
        group = file["layers/dense/vars"]
        del group["0"]
        group["0"] = np.array([[3], [-100], [5], [127]], dtype=np.int8)

    rewrite(path, "model.weights.h5", write_integers)
    with pytest.raises(
        NetworkError, match=r"layer 'last' .* weights of .*: got int8; expected float32; save"
    ):
        read_keras(path)


@pytest.mark.parametrize(
    ("make", "folder"),
    [
        (lambda layers: [layers.Dense(1, use_bias=False, name="x")], "dense"),
        (lambda layers: [layers.ReLU(name="x"), layers.Dense(1)], "re_lu"),
        (lambda layers: [layers.BatchNormalization(scale=False, name="x")], "batch_normalization"),
        (lambda layers: [layers.Dense(1), layers.PReLU(name="x")], "p_re_lu"),
    ],
)
def test_an_array_that_the_layer_does_not_have_is_refused(
    make: Make, folder: str, keras: Keras, tmp_path: Path
) -> None:
    path = save_model(model_of(keras, *make(keras.layers)), tmp_path)

    def add_array(file: h5py.File) -> None:
        group = file.require_group(f"layers/{folder}/vars")
        group.attrs["name"] = "x"
        group[str(len(group))] = np.ones(1, dtype=np.float32)

    rewrite(path, "model.weights.h5", add_array)
    with pytest.raises(
        NetworkError, match=r"layer 'x' \(\w+\) has too many arrays of weights: got \d; expected \d"
    ):
        read_keras(path)


def test_a_missing_bias_is_refused(keras: Keras, tmp_path: Path) -> None:
    path = save_model(model_of(keras, keras.layers.Dense(1, name="last")), tmp_path)
    rewrite(path, "model.weights.h5", lambda file: file.__delitem__("layers/dense/vars/1"))
    with pytest.raises(NetworkError, match=r"layer 'last' .* lacks weights in the file: got"):
        read_keras(path)


def save_float64_model(keras: Keras, folder: Path) -> tuple[Keras, Path]:
    """Save a model of float64 whose numbers float32 would round."""
    layers = keras.layers
    norm = layers.Normalization(dtype="float64")
    norm.adapt(NUMBERS / 3)
    rescaling, last = layers.Rescaling(1 / 3, dtype="float64"), layers.Dense(2, dtype="float64")
    model = keras.Sequential([keras.Input((4,), dtype="float64"), norm, rescaling, last])
    path = save_model(model, folder)

    def of_float64(content: dict[str, Any]) -> None:
        content["config"]["dtype"]["config"]["name"] = "float64"

    rewrite(
        path, "config.json", of_float64
    )  # the policy of the model, which Keras takes from the global one
    return model, path


def test_a_model_of_float64_is_read_without_rounding_to_float32(
    keras: Keras, tmp_path: Path
) -> None:
    model, path = save_float64_model(keras, tmp_path)
    mean, variance, _, kernel, bias = (
        np.asarray(array, np.float64) for array in model.get_weights()
    )
    expected = (NUMBERS - mean) / np.sqrt(variance) / 3 @ kernel + bias
    np.testing.assert_allclose(read_keras(path)(NUMBERS), expected, rtol=1e-13, atol=1e-13)


def test_only_keras_2_computes_in_float64_with_every_backend(keras: Keras, tmp_path: Path) -> None:
    model, path = save_float64_model(keras, tmp_path)
    assert assert_read(model, path, NUMBERS).source == "float32"
    rewrite(path, "metadata.json", lambda content: content.update(keras_version="2.15.0"))
    assert read_keras(path).source == "float64"
    rewrite(path, "config.json", lambda content: content["config"].update(dtype="float32"))
    assert read_keras(path).source == "float32"


def custom_dense(keras: Keras) -> list[Keras]:
    class Dense(keras.layers.Dense):  # type: ignore[misc]
        def call(self, x: Keras, training: bool | None = None) -> Keras:  # noqa: ARG002 - Keras passes it
            return keras.ops.matmul(x, keras.ops.abs(self.kernel)) + self.bias

    return [Dense(1, name="own")]


def custom_dropout(keras: Keras) -> list[Keras]:
    @keras.saving.register_keras_serializable(package="mine")
    class Dropout(keras.layers.Layer):  # type: ignore[misc]
        def call(self, x: Keras) -> Keras:
            return x * x

    return [Dropout(name="own"), keras.layers.Dense(1)]


def custom_function(keras: Keras) -> list[Keras]:
    @keras.saving.register_keras_serializable(package="mine")  # type: ignore[untyped-decorator]
    def relu(x: Keras) -> Keras:
        return keras.ops.abs(x)

    return [keras.layers.Dense(3, activation=relu, name="own"), keras.layers.Dense(1)]


def custom_activation(keras: Keras) -> list[Keras]:
    class ReLU(keras.layers.ReLU):  # type: ignore[misc]
        def call(self, x: Keras) -> Keras:
            return keras.ops.abs(x)

    return [keras.layers.Dense(3, activation=ReLU(), name="own"), keras.layers.Dense(1)]


@pytest.mark.parametrize("make", [custom_dense, custom_dropout, custom_function, custom_activation])
def test_a_custom_class_with_a_name_of_keras_is_refused(
    make: Make, keras: Keras, tmp_path: Path
) -> None:
    path = save_model(model_of(keras, *make(keras)), tmp_path)
    with pytest.raises(
        NetworkError, match=r"layer 'own' \(\w+\) is not one of Keras's own (layers|classes): got"
    ):
        read_keras(path)


@pytest.mark.parametrize("make", [custom_dropout, custom_function, custom_activation])
def test_an_h5_file_with_a_registered_class_or_a_custom_function_is_refused(
    make: Make, keras: Keras, tmp_path: Path
) -> None:
    path = save_model(model_of(keras, *make(keras)), tmp_path, "h5")
    with pytest.raises(NetworkError, match=r"'own' .*(Keras's own|is not supported)"):
        read_keras(path)


def test_a_custom_model_with_a_name_of_keras_is_refused(keras: Keras, tmp_path: Path) -> None:
    class Sequential(keras.Sequential):  # type: ignore[misc]
        def call(self, *inputs: Keras, **options: Keras) -> Keras:
            return -super().call(*inputs, **options)

    model = Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    with pytest.raises(
        NetworkError, match="the model is not one of Keras's own classes: got 'Sequential'"
    ):
        read_keras(save_model(model, tmp_path))


def test_an_operation_with_the_name_of_a_layer_is_refused(keras: Keras, tmp_path: Path) -> None:
    input_ = keras.Input((4,))
    model = keras.Model(input_, keras.ops.softmax(keras.layers.Dense(3)(input_), axis=0))
    with pytest.raises(NetworkError, match=r"\(Softmax\) is not one of Keras's own layers: got"):
        read_keras(save_model(model, tmp_path))


def remove_names(file: h5py.File) -> None:
    for folder in file["layers"].values():
        del folder["vars"].attrs["name"]


def swapped_names_model(keras: Keras) -> Keras:
    """Build a model whose layers have other names than their folders."""
    input_ = keras.Input((4,))
    value = input_
    for name in ("dense_1", "dense", "dense_2"):
        value = keras.layers.BatchNormalization(name=f"{name}_norm")(value)
        value = keras.layers.Dense(4, activation="relu", bias_initializer="normal", name=name)(
            value
        )
    return keras.Model(input_, value)


def test_weights_without_names_are_assigned_in_the_order_of_keras(
    keras: Keras, tmp_path: Path
) -> None:
    model = swapped_names_model(keras)
    path = save_model(model, tmp_path)
    rewrite(path, "model.weights.h5", remove_names)
    np.testing.assert_allclose(
        scores(keras.models.load_model(path), NUMBERS), scores(model, NUMBERS), rtol=1e-6
    )
    assert_read(model, path, NUMBERS)


def remove_one_name(file: h5py.File) -> None:
    del file["layers/dense/vars"].attrs["name"]


def repeat_a_name(file: h5py.File) -> None:
    file["layers/dense_1/vars"].attrs["name"] = "dense_1"


def rename_a_folder(file: h5py.File) -> None:
    remove_names(file)
    file.move("layers/dense_2", "layers/dense_7")


@pytest.mark.parametrize("edit", [remove_one_name, repeat_a_name, rename_a_folder])
def test_weights_of_an_ambiguous_layer_are_refused(
    edit: Callable[[h5py.File], None], keras: Keras, tmp_path: Path
) -> None:
    path = save_model(swapped_names_model(keras), tmp_path)
    rewrite(path, "model.weights.h5", edit)
    with pytest.raises(NetworkError, match="does not name the layer of each array"):
        read_keras(path)


def test_the_hard_sigmoid_depends_on_the_version_that_wrote_the_file(
    keras: Keras, tmp_path: Path
) -> None:
    layers = keras.layers
    model = model_of(keras, layers.Dense(3, activation="hard_sigmoid"), layers.Dense(1))
    path = save_model(model, tmp_path)
    assert_read(model, path, NUMBERS)
    rewrite(path, "metadata.json", lambda content: content.update(keras_version="2.15.0"))
    kernel, bias, last, end = (np.asarray(array, np.float64) for array in model.get_weights())
    hidden = np.clip(0.2 * (NUMBERS @ kernel + bias) + 0.5, 0, 1)
    np.testing.assert_allclose(read_keras(path)(NUMBERS), hidden @ last + end, atol=1e-9)


def test_an_unknown_version_of_keras_is_refused(keras: Keras, tmp_path: Path) -> None:
    path = save_model(model_of(keras, keras.layers.Dense(1)), tmp_path)
    rewrite(path, "metadata.json", lambda content: content.update(keras_version="4.0.0"))
    with pytest.raises(
        NetworkError, match=r"version of Keras is not supported: got 4\.0\.0; expected 3 or older"
    ):
        read_keras(path)
