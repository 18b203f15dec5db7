"""Functional models whose layers are read more than once."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest

import feta
from feta import NetworkError, read_keras
from feta.space.attribute import Integer, Real

pytest.importorskip("h5py", reason="h5py is not installed")

from tests.unit.readers.keras.models import NUMBERS, RNG, Keras, Make, save_model, scores

pytestmark = [
    pytest.mark.usefixtures("one_program"),
    pytest.mark.filterwarnings("ignore"),  # Keras and torch warn of each other
]


def with_weights(model: Keras) -> Keras:
    for array in model.weights:
        if array.dtype.startswith("float") and "variance" not in array.name:
            array.assign(RNG.uniform(-1.0, 1.0, size=array.shape))
    return model


def residual(keras: Keras) -> Keras:
    layers, x = keras.layers, keras.Input((4,))
    first = layers.Dense(4, activation="tanh")(x)
    block = layers.BatchNormalization()(layers.Dense(4, activation="relu")(first))
    total = layers.ReLU()(layers.Add()([block, first, x]))
    return keras.Model(x, layers.Dense(1)(layers.Subtract()([total, first])))


def wide_and_deep(keras: Keras) -> Keras:
    layers, x, more = keras.layers, keras.Input((3,)), keras.Input((1,))
    deep = layers.Dense(3, activation="gelu")(layers.Concatenate()([x, more]))
    joined = layers.Concatenate()([x, layers.Dropout(0.5)(deep), more])
    return keras.Model([x, more], layers.Dense(1, activation="sigmoid")(joined))


def towers(keras: Keras) -> Keras:
    layers, x = keras.layers, keras.Input((4,))
    left = layers.Dense(3, activation="sigmoid")(x)
    right = layers.Dense(2, activation="relu")(layers.Dense(3, activation="relu")(x))
    return keras.Model(x, layers.Dense(1)(layers.Concatenate()([left, right, left])))


SPACE = feta.FeatureSpace(
    (
        Integer("age", 0, 4, sensitive=True),
        Integer("zone", -2, 2, sensitive=True),
        Real("income", -3.0, 3.0),
        Integer("debts", 0, 4),
    )
)


@pytest.mark.parametrize("ending", ["keras", "h5"])
@pytest.mark.parametrize("make", [residual, wide_and_deep, towers])
def test_scores_and_verdicts_are_those_of_keras(
    make: Make, ending: str, keras: Keras, tmp_path: Path
) -> None:
    model = with_weights(make(keras))
    network = read_keras(save_model(model, tmp_path, ending))
    own = scores(model, NUMBERS)
    found = network(NUMBERS)
    found = 1 / (1 + np.exp(-found)) if make is wide_and_deep else found
    np.testing.assert_allclose(found, own, rtol=1e-5, atol=1e-5)
    person = np.array([1.0, 0.0, 0.5, 2.0])
    lattice = np.array([[*pair, 0.5, 2.0] for pair in product(range(5), range(-2, 3))])
    values = np.sort(scores(model, lattice).ravel())
    gap = int(np.argmax(np.diff(values)))
    level = (values[gap] + values[gap + 1]) / 2  # far from any score
    threshold = np.log(level / (1 - level)) if make is wide_and_deep else level
    read = feta.Model(SPACE, network, threshold=float(threshold))
    assert read.decide(lattice).tolist() == (scores(model, lattice).ravel() > level).tolist()
    assert isinstance(feta.verify(feta.FairAt(read, person)), feta.Unfair)


def normalized(keras: Keras) -> Keras:
    layers, x = keras.layers, keras.Input((4,))
    return keras.Model(x, layers.Add()([layers.LayerNormalization()(layers.Dense(4)(x)), x]))


def multiplied(keras: Keras) -> Keras:
    layers, x = keras.layers, keras.Input((4,))
    return keras.Model(x, layers.Multiply()([layers.Dense(4)(x), x]))


def shared(keras: Keras) -> Keras:
    layers, x, y = keras.layers, keras.Input((4,)), keras.Input((4,))
    tower = layers.Dense(4)
    return keras.Model([x, y], layers.Add()([tower(x), tower(y)]))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (normalized, r"\(LayerNormalization\) is not supported"),
        (multiplied, "combines 2 values that depend on the input"),
        (shared, "is shared: got 2 uses; expected 1"),
    ],
)
def test_what_is_no_sum_is_refused(make: Make, message: str, keras: Keras, tmp_path: Path) -> None:
    with pytest.raises(NetworkError, match=message):
        read_keras(save_model(make(keras), tmp_path))


def test_a_sigmoid_before_the_last_layer_is_read(keras: Keras, tmp_path: Path) -> None:
    layers = [keras.layers.Dense(3, activation="sigmoid"), keras.layers.Dense(1)]
    model = with_weights(keras.Sequential([keras.Input((4,)), *layers]))
    network = read_keras(save_model(model, tmp_path))
    np.testing.assert_allclose(network(NUMBERS), scores(model, NUMBERS), rtol=1e-5, atol=1e-5)
