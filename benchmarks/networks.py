"""Networks for benchmarks: trained on real data, or random ones of any shape; also in ONNX."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from feta import FeatureSpace, Integer, Real, datasets
from feta.arrays import Matrix
from feta.metrics.rates import accuracy
from feta.model import Model
from feta.scorer.network.network import Network
from feta.space.attribute import Categorical
from feta.train.plain import PlainTrainer
from feta_paper.timing import Float32s, float32_layers


@dataclass(frozen=True)
class Grid:
    """The settings among which validation selects."""

    epochs: int
    batch_sizes: tuple[int, ...]
    learning_rates: tuple[float, ...]


# German as in the paper's appendix; on the large data sets, settings that take seconds.
TRAINING = {
    "german": Grid(500, (64, 128), (1e-2, 1e-3, 1e-4)),
    "adult": Grid(12, (256,), (1e-2, 1e-3)),
    "law": Grid(12, (256,), (1e-2, 1e-3)),
}

# A data set is split into this many parts, of which one is held out.
FOLDS = 5


@dataclass(frozen=True, eq=False)
class Trained:
    """A trained model, and people for it."""

    title: str
    model: Model
    people: Matrix  # no two of them are counterparts
    everyone: Matrix  # in the order of the data set
    accuracy: float  # on the held-out part


def train(name: str, *, seed: int = 0, fold_number: int = 0, activation: str = "relu") -> Trained:
    """Train three hidden layers of 16 on standardized numbers; validation selects the epoch."""
    dataset, grid = datasets.load(name), TRAINING[name]
    everyone = dataset.space.encode(dataset.frame)
    indices = np.random.default_rng(seed).permutation(len(everyone))
    test = indices * FOLDS // len(everyone) == fold_number
    trainer = PlainTrainer(
        dataset.space,
        activation=activation,
        learning_rates=grid.learning_rates,
        batch_sizes=grid.batch_sizes,
        epochs=grid.epochs,
        seed=seed,
    )
    run = trainer.train(everyone[~test], dataset.labels[~test])
    model = Model(dataset.space, run.network)
    test_accuracy = accuracy(model.decide(everyone[test]), dataset.labels[test])
    # All people of a small data set are measured: two hundred take less time than starting threads.
    measured = everyone if len(everyone) <= 1000 else everyone[test]
    _, first = np.unique(measured[:, ~dataset.space.sensitive_columns], axis=0, return_index=True)
    return Trained(dataset.title, model, measured[np.sort(first)], measured, test_accuracy)


def with_real_age(model: Model) -> Model | None:
    """Return the model with a real-valued age; None if age is not sensitive."""
    age = [
        attribute
        for attribute in model.space.sensitive
        if attribute.name == "age" and isinstance(attribute, Integer)
    ]
    if not age:
        return None
    real = Real("age", float(age[0].low), float(age[0].high), sensitive=True)
    attributes = tuple(
        real if attribute.name == "age" else attribute for attribute in model.space.attributes
    )
    return replace(model, space=FeatureSpace(attributes), threshold=None)


def random_model(axes: Sequence[int], width: int, depth: int, seed: int) -> tuple[Model, Matrix]:
    """Draw a network over an integer and categories of these sizes, and people for it.

    The threshold is the median score of random counterparts, so that majorities are not obvious.
    """
    rng = np.random.default_rng(seed)
    first = Integer("number", 0, axes[0] - 1, sensitive=True)
    rest = [
        Categorical(f"category {index}", tuple(map(str, range(size))), sensitive=True)
        for index, size in enumerate(axes[1:])
    ]
    shared = [Real(f"shared {index}", -2.0, 2.0) for index in range(20)]
    space = FeatureSpace((first, *rest, *shared))
    widths = [space.width, *[width] * depth, 1]
    layers = [
        (rng.normal(0, np.sqrt(2 / inputs), (outputs, inputs)), rng.normal(0, 0.1, outputs))
        for inputs, outputs in pairwise(widths)
    ]
    layers[0][0][:, 0] /= axes[0] / np.sqrt(12)  # the spread of the number, as if standardized
    people = np.zeros((64, space.width))
    people[:, : -len(shared)] = np.repeat(space.lattice.codes(0, 1), len(people), axis=0)
    people[:, -len(shared) :] = rng.uniform(-2, 2, (len(people), len(shared)))
    network = Network.from_layers(layers)
    ids = rng.integers(space.lattice.size, size=len(people))
    counterparts = space.lattice.moved(people, ids)
    threshold = float(np.median(network(np.array(counterparts))))
    return Model(space, network, threshold=threshold), people


def in_onnxruntime(model: Model) -> Callable[[Float32s], object]:
    """Build the network as ONNX, run by onnxruntime in one thread."""
    import onnxruntime  # noqa: PLC0415 - an extra; the other rows do not need it

    nodes, initializers, value = [], [], "people"
    layers = float32_layers(model)
    for index, (weight, bias) in enumerate(layers):
        initializers += [
            numpy_helper.from_array(weight, f"w{index}"),
            numpy_helper.from_array(bias, f"b{index}"),
        ]
        nodes.append(
            helper.make_node("Gemm", [value, f"w{index}", f"b{index}"], [f"z{index}"], transB=1)
        )
        value = f"z{index}"
        if index < len(layers) - 1:
            nodes.append(helper.make_node("Relu", [value], [f"a{index}"]))
            value = f"a{index}"
    ends = (("people", model.space.width), (value, 1))
    inputs, outputs = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, width])
        for name, width in ends
    )
    graph = helper.make_graph(nodes, "network", [inputs], [outputs], initializers)
    onnx_model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(onnx_model.SerializeToString(), options)
    return lambda rows: session.run(None, {"people": rows})
