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

pytestmark = pytest.mark.filterwarnings("ignore")  # Keras's own

RNG = np.random.default_rng(4)
NUMBERS = RNG.normal(size=(60, 4)).astype(np.float32).astype(np.float64)
CODES = RNG.integers(0, 5, size=(60, 4)).astype(np.float64)
Keras = Any  # the package, or a model of it: it ships no types
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
    """Parse all files in forks of one process: one process per file is slower than the tests."""
    with Hdf5Program() as program, pytest.MonkeyPatch.context() as patch:
        patch.setattr(keras_file, "parse_hdf5", program.parse)
        yield


def model_of(keras: Keras, *layers: Keras, **entry: object) -> Keras:
    """Make a model of the layers in a row, on four columns, with numbers that no fresh one has."""
    model = keras.Sequential([keras.Input((4,), **entry), *layers])
    for array in model.weights:
        if array.dtype.startswith("float") and "variance" not in array.name:
            array.assign(RNG.uniform(-1.5, 1.5, size=array.shape))
    return model


def saved(model: Keras, folder: Path, ending: str = "keras") -> Path:
    path = folder / f"model.{ending}"
    model.save(path)
    return path


def rewrite(path: Path, name: str, edit: Callable[[Any], None]) -> None:
    """Alter a description or the weights within a .keras file."""
    with zipfile.ZipFile(path) as archive:
        members = {one: archive.read(one) for one in archive.namelist()}
    if name.endswith(".json"):
        told = json.loads(members[name])
        edit(told)
        members[name] = json.dumps(told).encode()
    else:
        content = io.BytesIO(members[name])
        with h5py.File(content, "r+") as file:
            edit(file)
        members[name] = content.getvalue()
    with zipfile.ZipFile(path, "w") as archive:
        for one, data in members.items():
            archive.writestr(one, data)


def scores(model: Keras, rows: Matrix) -> Matrix:
    """Give Keras's own scores, for inputs side by side."""
    widths = [one.shape[1] for one in model.inputs]
    parts = np.split(rows, np.cumsum(widths)[:-1], axis=1)
    given = [part.astype(one.dtype) for part, one in zip(parts, model.inputs, strict=True)]
    theirs = model.predict(given if len(given) > 1 else given[0], verbose=0)
    return np.asarray(theirs, dtype=np.float64).reshape(len(rows), -1)


def assert_read(model: Keras, path: Path, rows: Matrix, *, rtol: float = 1e-5) -> Network:
    network = read_keras(path)
    theirs = scores(model, rows)
    np.testing.assert_allclose(network(rows), theirs, rtol=rtol, atol=rtol)
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
        read_keras(saved(model, tmp_path, ending))


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16", "float16"])
def test_a_model_that_computes_in_a_shorter_format_is_refused(
    policy: str, keras: Keras, tmp_path: Path
) -> None:
    model = model_of(keras, keras.layers.Dense(1, name="last", dtype=policy))
    with pytest.raises(NetworkError, match=f"layer 'last' .* dtype policy: got '{policy}'"):
        read_keras(saved(model, tmp_path))


def test_whole_numbers_are_no_weights(keras: Keras, tmp_path: Path) -> None:
    path = saved(model_of(keras, keras.layers.Dense(1, name="last")), tmp_path)

    def whole(file: h5py.File) -> None:
        held = file["layers/dense/vars"]
        del held["0"]
        held["0"] = np.array([[3], [-100], [5], [127]], dtype=np.int8)

    rewrite(path, "model.weights.h5", whole)
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
def test_an_array_that_the_layer_does_not_have_is_not_taken_for_one_that_it_has(
    make: Make, folder: str, keras: Keras, tmp_path: Path
) -> None:
    path = saved(model_of(keras, *make(keras.layers)), tmp_path)

    def longer(file: h5py.File) -> None:
        held = file.require_group(f"layers/{folder}/vars")
        held.attrs["name"] = "x"
        held[str(len(held))] = np.ones(1, dtype=np.float32)

    rewrite(path, "model.weights.h5", longer)
    with pytest.raises(
        NetworkError, match=r"layer 'x' \(\w+\) has too many arrays of weights: got \d; expected \d"
    ):
        read_keras(path)


def test_a_bias_that_is_missing_is_not_taken_for_zero(keras: Keras, tmp_path: Path) -> None:
    path = saved(model_of(keras, keras.layers.Dense(1, name="last")), tmp_path)
    rewrite(path, "model.weights.h5", lambda file: file.__delitem__("layers/dense/vars/1"))
    with pytest.raises(NetworkError, match=r"layer 'last' .* lacks weights in the file: got"):
        read_keras(path)


def double(keras: Keras, folder: Path) -> tuple[Keras, Path]:
    """Save a model of float64 whose numbers float32 would round."""
    layers = keras.layers
    norm = layers.Normalization(dtype="float64")
    norm.adapt(NUMBERS / 3)
    rescaling, last = layers.Rescaling(1 / 3, dtype="float64"), layers.Dense(2, dtype="float64")
    model = keras.Sequential([keras.Input((4,), dtype="float64"), norm, rescaling, last])
    path = saved(model, folder)

    def of_float64(told: dict[str, Any]) -> None:
        told["config"]["dtype"]["config"]["name"] = "float64"

    rewrite(path, "config.json", of_float64)  # the model's own policy, which is the global one
    return model, path


def test_a_model_of_float64_is_read_without_rounding_to_float32(
    keras: Keras, tmp_path: Path
) -> None:
    model, path = double(keras, tmp_path)
    mean, variance, _, kernel, bias = (np.asarray(one, np.float64) for one in model.get_weights())
    expected = (NUMBERS - mean) / np.sqrt(variance) / 3 @ kernel + bias
    np.testing.assert_allclose(read_keras(path)(NUMBERS), expected, rtol=1e-13, atol=1e-13)


def test_only_keras_2_computes_in_float64_wherever_it_runs(keras: Keras, tmp_path: Path) -> None:
    model, path = double(keras, tmp_path)
    assert assert_read(model, path, NUMBERS).source == "float32"
    rewrite(path, "metadata.json", lambda told: told.update(keras_version="2.15.0"))
    assert read_keras(path).source == "float64"
    rewrite(path, "config.json", lambda told: told["config"].update(dtype="float32"))
    assert read_keras(path).source == "float32"


# Classes of one's own.


def own_dense(keras: Keras) -> list[Keras]:
    class Dense(keras.layers.Dense):  # type: ignore[misc]
        def call(self, x: Keras, training: bool | None = None) -> Keras:  # noqa: ARG002 - Keras's own
            return keras.ops.matmul(x, keras.ops.abs(self.kernel)) + self.bias

    return [Dense(1, name="own")]


def own_dropout(keras: Keras) -> list[Keras]:
    @keras.saving.register_keras_serializable(package="mine")
    class Dropout(keras.layers.Layer):  # type: ignore[misc]
        def call(self, x: Keras) -> Keras:
            return x * x

    return [Dropout(name="own"), keras.layers.Dense(1)]


def own_function(keras: Keras) -> list[Keras]:
    @keras.saving.register_keras_serializable(package="mine")  # type: ignore[untyped-decorator]
    def relu(x: Keras) -> Keras:
        return keras.ops.abs(x)

    return [keras.layers.Dense(3, activation=relu, name="own"), keras.layers.Dense(1)]


def own_activation(keras: Keras) -> list[Keras]:
    class ReLU(keras.layers.ReLU):  # type: ignore[misc]
        def call(self, x: Keras) -> Keras:
            return keras.ops.abs(x)

    return [keras.layers.Dense(3, activation=ReLU(), name="own"), keras.layers.Dense(1)]


@pytest.mark.parametrize("make", [own_dense, own_dropout, own_function, own_activation])
def test_a_custom_class_with_a_name_of_keras_is_refused(
    make: Make, keras: Keras, tmp_path: Path
) -> None:
    path = saved(model_of(keras, *make(keras)), tmp_path)
    with pytest.raises(
        NetworkError, match=r"layer 'own' \(\w+\) is not one of Keras's own (layers|classes): got"
    ):
        read_keras(path)


@pytest.mark.parametrize("make", [own_dropout, own_function, own_activation])
def test_an_h5_file_tells_a_registered_class_and_a_custom_function(
    make: Make, keras: Keras, tmp_path: Path
) -> None:
    path = saved(model_of(keras, *make(keras)), tmp_path, "h5")
    with pytest.raises(NetworkError, match=r"'own' .*(Keras's own|is not supported)"):
        read_keras(path)


def test_a_custom_model_with_a_name_of_keras_is_refused(keras: Keras, tmp_path: Path) -> None:
    class Sequential(keras.Sequential):  # type: ignore[misc]
        def call(self, *given: Keras, **more: Keras) -> Keras:
            return -super().call(*given, **more)

    model = Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    with pytest.raises(
        NetworkError, match="the model is not one of Keras's own classes: got 'Sequential'"
    ):
        read_keras(saved(model, tmp_path))


def test_an_operation_is_not_taken_for_the_layer_of_its_name(keras: Keras, tmp_path: Path) -> None:
    entry = keras.Input((4,))
    model = keras.Model(entry, keras.ops.softmax(keras.layers.Dense(3)(entry), axis=0))
    with pytest.raises(NetworkError, match=r"\(Softmax\) is not one of Keras's own layers: got"):
        read_keras(saved(model, tmp_path))


# Older files.


def unnamed(file: h5py.File) -> None:
    for folder in file["layers"].values():
        del folder["vars"].attrs["name"]


def crossed(keras: Keras) -> Keras:
    """Make a model whose layers' names are not those of their folders."""
    entry = keras.Input((4,))
    value = entry
    for name in ("dense_1", "dense", "dense_2"):
        value = keras.layers.BatchNormalization(name=f"{name}_norm")(value)
        value = keras.layers.Dense(4, activation="relu", bias_initializer="normal", name=name)(
            value
        )
    return keras.Model(entry, value)


def test_weights_without_names_go_to_the_layers_as_keras_numbers_them(
    keras: Keras, tmp_path: Path
) -> None:
    model = crossed(keras)
    path = saved(model, tmp_path)
    rewrite(path, "model.weights.h5", unnamed)
    np.testing.assert_allclose(
        scores(keras.models.load_model(path), NUMBERS), scores(model, NUMBERS), rtol=1e-6
    )
    assert_read(model, path, NUMBERS)


def some_unnamed(file: h5py.File) -> None:
    del file["layers/dense/vars"].attrs["name"]


def twice_named(file: h5py.File) -> None:
    file["layers/dense_1/vars"].attrs["name"] = "dense_1"


def strange_folder(file: h5py.File) -> None:
    unnamed(file)
    file.move("layers/dense_2", "layers/dense_7")


@pytest.mark.parametrize("edit", [some_unnamed, twice_named, strange_folder])
def test_weights_whose_layer_is_not_sure_are_refused(
    edit: Callable[[h5py.File], None], keras: Keras, tmp_path: Path
) -> None:
    path = saved(crossed(keras), tmp_path)
    rewrite(path, "model.weights.h5", edit)
    with pytest.raises(NetworkError, match="does not name the layer of each array"):
        read_keras(path)


def test_the_hard_sigmoid_is_that_of_the_keras_that_wrote_the_file(
    keras: Keras, tmp_path: Path
) -> None:
    layers = keras.layers
    model = model_of(keras, layers.Dense(3, activation="hard_sigmoid"), layers.Dense(1))
    path = saved(model, tmp_path)
    assert_read(model, path, NUMBERS)
    rewrite(path, "metadata.json", lambda told: told.update(keras_version="2.15.0"))
    kernel, bias, last, end = (np.asarray(one, np.float64) for one in model.get_weights())
    hidden = np.clip(0.2 * (NUMBERS @ kernel + bias) + 0.5, 0, 1)
    np.testing.assert_allclose(read_keras(path)(NUMBERS), hidden @ last + end, atol=1e-9)


def test_a_keras_that_is_not_known_yet_is_refused(keras: Keras, tmp_path: Path) -> None:
    path = saved(model_of(keras, keras.layers.Dense(1)), tmp_path)
    rewrite(path, "metadata.json", lambda told: told.update(keras_version="4.0.0"))
    with pytest.raises(
        NetworkError, match=r"version of Keras is not supported: got 4\.0\.0; expected 3 or older"
    ):
        read_keras(path)


# Shapes.


def joined(keras: Keras, axis: int) -> Keras:
    layers = keras.layers
    one, other = keras.Input((2,), name="one"), keras.Input((2,), name="other")
    looked_up = [layers.Embedding(5, 3)(one), layers.Embedding(5, 3)(other)]
    flat = layers.Flatten()(layers.Concatenate(axis=axis)(looked_up))
    return keras.Model([one, other], layers.Dense(2)(flat))


def reshaped(keras: Keras, *between: Keras) -> Keras:
    entry = keras.Input((4,))
    value = keras.layers.Embedding(5, 3)(entry)
    for layer in between:
        value = layer(value)
    return keras.Model(entry, keras.layers.Dense(2)(value))


def normalized(keras: Keras) -> Keras:
    layers = keras.layers
    norm = layers.Normalization(mean=[1.0, 2.0, 3.0], variance=[0.25, 4.0, 1.0])
    return reshaped(keras, norm, layers.Flatten())


SHAPED: list[Make] = [
    lambda keras: joined(keras, -1),
    lambda keras: joined(keras, 1),
    lambda keras: reshaped(keras, keras.layers.Flatten()),
    lambda keras: reshaped(keras, keras.layers.Flatten(data_format="channels_first")),
    lambda keras: reshaped(
        keras, keras.layers.Reshape((-1, 2)), keras.layers.Flatten(data_format="channels_first")
    ),
    normalized,
]


@pytest.mark.parametrize("make", SHAPED)
def test_embedded_columns_keep_the_order_of_keras(make: Make, keras: Keras, tmp_path: Path) -> None:
    model = make(keras)
    assert_read(model, saved(model, tmp_path), CODES)


@pytest.mark.parametrize("make", SHAPED)
def test_the_layers_run_one_by_one_keep_the_order_of_keras(
    make: Make, keras: Keras, tmp_path: Path
) -> None:
    model = make(keras)
    ours = KerasEvaluator(load_keras(saved(model, tmp_path)))(CODES)
    np.testing.assert_allclose(ours, scores(model, CODES), atol=1e-5)


def test_embedded_columns_that_are_not_flattened_are_refused(keras: Keras, tmp_path: Path) -> None:
    model = reshaped(keras)
    with pytest.raises(
        NetworkError,
        match=r"several rows of values per person: got the shape \[4, 3\]; .* add a Flatten layer",
    ):
        read_keras(saved(model, tmp_path))


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
def test_values_are_not_taken_along_another_axis(
    layer: Make, message: str, keras: Keras, tmp_path: Path
) -> None:
    model = model_of(keras, keras.layers.Dense(6), layer(keras.layers))
    with pytest.raises(NetworkError, match=message):
        read_keras(saved(model, tmp_path))


def test_an_input_that_keras_cuts_to_whole_numbers_is_refused_unless_looked_up(
    keras: Keras, tmp_path: Path
) -> None:
    layers = keras.layers
    model = model_of(
        keras, layers.Embedding(5, 2), layers.Flatten(), layers.Dense(1), dtype="int32"
    )
    assert_read(model, saved(model, tmp_path), CODES)
    model = model_of(keras, layers.Dense(1), dtype="int32", name="codes")
    message = (
        r"the input 'codes' of int32 is truncated to integers: got layer '\w+' "
        r"\(Dense\) after it; expected an Embedding"
    )
    with pytest.raises(NetworkError, match=message):
        read_keras(saved(model, tmp_path))


# Single layers.


def test_a_normalization_divides_by_no_less_than_keras_does(keras: Keras, tmp_path: Path) -> None:
    norm = keras.layers.Normalization(mean=[0.0] * 4, variance=[1e-16, 0.0, 1.0, 4.0])
    model = model_of(keras, norm, keras.layers.Dense(1))
    assert_read(model, saved(model, tmp_path), NUMBERS)


@pytest.mark.parametrize("ending", ["keras", "h5"])
def test_an_adapted_normalization_of_a_constant_column_is_read(
    ending: str, keras: Keras, tmp_path: Path
) -> None:
    norm = keras.layers.Normalization()
    norm.adapt(np.array([[1, 2, 3, 4], [1, 3, 5, 7]], dtype=np.float32))
    model = keras.Sequential([keras.Input((4,)), norm, keras.layers.Dense(1)])
    assert_read(model, saved(model, tmp_path, ending), NUMBERS)


@pytest.mark.parametrize("ending", ["keras", "h5"])
@pytest.mark.parametrize("kind", ["Dropout", "BatchNormalization"])
def test_a_layer_called_as_in_training_is_refused(
    kind: str, ending: str, keras: Keras, tmp_path: Path
) -> None:
    layer = getattr(keras.layers, kind)(**{"rate": 0.5} if kind == "Dropout" else {}, name="x")
    entry = keras.Input((4,))
    model = keras.Model(entry, keras.layers.Dense(1)(layer(entry, training=True)))
    with pytest.raises(
        NetworkError,
        match=r"layer 'x' .* called with further arguments, such as training=True; "
        r"expected its inputs alone",
    ):
        read_keras(saved(model, tmp_path, ending))


@pytest.mark.parametrize("training", [True, False])
def test_keras_2_tells_a_call_as_in_training_in_its_own_way(
    training: bool, keras: Keras, tmp_path: Path
) -> None:
    entry = keras.Input((4,), name="entry")
    value = keras.layers.Dropout(0.5, name="x")(entry, training=False)
    model = keras.Model(entry, keras.layers.Dense(1)(value))
    path = saved(model, tmp_path)

    def as_keras_2(told: dict[str, Any]) -> None:
        layer = next(one for one in told["config"]["layers"] if one["name"] == "x")
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
        read_keras(saved(model, tmp_path))


def test_a_number_beyond_the_format_is_refused(keras: Keras, tmp_path: Path) -> None:
    model = model_of(keras, keras.layers.Rescaling(2.0, name="x"), keras.layers.Dense(1))
    path = saved(model, tmp_path)
    rewrite(
        path, "config.json", lambda told: told["config"]["layers"][1]["config"].update(scale=1e99)
    )
    with pytest.raises(NetworkError, match=r"layer 'x' \(Rescaling\) has invalid numbers: got"):
        read_keras(path)
