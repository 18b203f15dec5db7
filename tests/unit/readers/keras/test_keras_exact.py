"""Keras files that are easily misread: each is read with Keras's scores, or refused."""

import pytest

pytest.importorskip("h5py", reason="h5py is not installed")

import io
import json
import os
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from feta import NetworkError, read_keras
from feta.arrays import Matrix
from feta.readers.keras import file as keras_file
from feta.readers.keras.evaluation import KerasEvaluator
from feta.readers.keras.file import load_keras
from feta.readers.keras.hdf5 import Hdf5Program
from feta.scorer.network.network import Network

pytestmark = pytest.mark.filterwarnings("ignore")  # of Keras

RNG = np.random.default_rng(4)
NUMBERS = RNG.normal(size=(60, 4)).astype(np.float32).astype(np.float64)
CODES = RNG.integers(0, 5, size=(60, 4)).astype(np.float64)
Keras = Any  # the package or one of its models; it has no types
Make = Callable[[Keras], Keras]


@pytest.fixture(scope="module")
def keras() -> Keras:
    pytest.importorskip("torch", reason="torch is not installed")
    os.environ["KERAS_BACKEND"] = "torch"
    package: Keras = pytest.importorskip("keras", reason="keras is not installed")
    package.utils.set_random_seed(0)
    return package


@pytest.fixture(scope="module", autouse=True)
def _one_program() -> Iterator[None]:
    """Parse all files in forks of one process, because one process per file is slow."""
    with Hdf5Program() as program, pytest.MonkeyPatch.context() as patch:
        patch.setattr(keras_file, "parse_hdf5", program.parse)
        yield


def model_of(keras: Keras, *layers: Keras, **options: object) -> Keras:
    """Build a sequential model of these layers on four columns, with random weights."""
    model = keras.Sequential([keras.Input((4,), **options), *layers])
    for array in model.weights:
        if array.dtype.startswith("float") and "variance" not in array.name:
            array.assign(RNG.uniform(-1.5, 1.5, size=array.shape))
    return model


def save_model(model: Keras, folder: Path, ending: str = "keras") -> Path:
    path = folder / f"model.{ending}"
    model.save(path)
    return path


def rewrite(path: Path, name: str, edit: Callable[[Any], None]) -> None:
    """Change a description or the weights in a .keras file."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    if name.endswith(".json"):
        content = json.loads(members[name])
        edit(content)
        members[name] = json.dumps(content).encode()
    else:
        buffer = io.BytesIO(members[name])
        with h5py.File(buffer, "r+") as file:
            edit(file)
        members[name] = buffer.getvalue()
    with zipfile.ZipFile(path, "w") as archive:
        for member, data in members.items():
            archive.writestr(member, data)


def scores(model: Keras, rows: Matrix) -> Matrix:
    """Return Keras's scores; `rows` contains the columns of all inputs."""
    widths = [tensor.shape[1] for tensor in model.inputs]
    parts = np.split(rows, np.cumsum(widths)[:-1], axis=1)
    inputs = [part.astype(tensor.dtype) for part, tensor in zip(parts, model.inputs, strict=True)]
    predictions = model.predict(inputs if len(inputs) > 1 else inputs[0], verbose=0)
    return np.asarray(predictions, dtype=np.float64).reshape(len(rows), -1)


def assert_read(model: Keras, path: Path, rows: Matrix, *, rtol: float = 1e-5) -> Network:
    network = read_keras(path)
    expected = scores(model, rows)
    np.testing.assert_allclose(network(rows), expected, rtol=rtol, atol=rtol)
    return network


# Formats.


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


# Custom classes.


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


# Older files.


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


# Shapes.


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


# Single layers.


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
    with pytest.raises(NetworkError, match=r"layer 'x' \(Rescaling\) has invalid numbers: got"):
        read_keras(path)
