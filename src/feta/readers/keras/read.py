"""Keras: a saved model read into a Network from its file alone; Keras itself is not needed."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from feta.errors import NetworkError
from feta.readers.keras.checks import check_class, policy_of
from feta.readers.keras.file import (
    BROKEN,
    KerasLayer,
    KerasModel,
    damaged,
    load_keras,
)
from feta.readers.keras.layers import (
    batch_norm_of,
    check_arrays,
    check_last_axis,
    layer_activation,
    matrix_of,
    named_activation,
    scaling_of,
)
from feta.readers.keras.run import KerasRun
from feta.scorer.network.activation import SMOOTH, refuse_smooth
from feta.scorer.network.agreement import Squash, check_agreement, with_log_softmax
from feta.scorer.network.builder import NetworkBuilder
from feta.scorer.network.input_blocks import Signals, embedded, inputs
from feta.scorer.network.network import Network

Block = np.ndarray[Any, np.dtype[np.object_]]  # of signals, in the shape that Keras gives them

# Rows scored by both, to see that the folding is right: enough to reach every neuron's two sides.
CHECKED_ROWS = 256

# How far from 0 they are drawn: scaled inputs, years, and amounts; what is cut off far out shows there.
SCALES = (1.0, 10.0, 1e3)

# Layers that change nothing, or only a shape, when a trained network decides.
SAME = {
    "ActivityRegularization",
    "AlphaDropout",
    "Dropout",
    "Flatten",
    "GaussianDropout",
    "GaussianNoise",
    "Identity",
    "Reshape",
}
SCALINGS = ("BatchNormalization", "Normalization", "Rescaling")
SQUASHES: dict[str, Squash] = {
    "sigmoid": "sigmoid",
    "softmax": "softmax",
    "log_softmax": "log_softmax",
}
KINDS = {
    *SAME,
    *SCALINGS,
    "Activation",
    "Concatenate",
    "Dense",
    "Embedding",
    "LeakyReLU",
    "PReLU",
    "ReLU",
    "Softmax",
}
READ = "InputLayer, Dense, Activation, ReLU, LeakyReLU, PReLU, BatchNormalization, Normalization, Rescaling, Embedding and Concatenate of the inputs, Dropout, Flatten and a last sigmoid or softmax"


def read_keras(path: str | Path) -> Network:
    """Read a network from a .keras or .h5 file that Keras saved.

    Sequential and functional models are read: Dense layers with piecewise-linear activations, batch
    norm, Normalization and Rescaling; Embedding and Concatenate before the first Dense layer, with
    inputs side by side in the model's order. A last sigmoid or softmax is taken off: scores are what
    goes into it. The reading is checked against the layers run one by one, as they stand. A class of
    one's own is refused, except in an .h5 file under a name of Keras's own: nothing there tells it.
    """
    try:
        with np.errstate(all="ignore"):
            model = load_keras(Path(path))
            reading = _LayerReader(model)
            network = reading.network()
            _check(network, model, reading.squashed)
            return network
    except NetworkError as error:
        raise NetworkError(f"{path}: {error}") from None
    except BROKEN as error:
        raise NetworkError(f"{path}: {damaged(error)}") from None


def _check(network: Network, model: KerasModel, squashed: Squash | None) -> None:
    what, rng = "the layers' own", np.random.default_rng(0)
    in_double = replace(network, source="float64")
    for scale in SCALES:
        rows = scale * rng.normal(size=(CHECKED_ROWS, network.width))
        for table in network.first.tables:
            rows[:, table.column] = rng.choice(table.numbers, CHECKED_ROWS)
        if scale == 1:
            check_agreement(network, rows, KerasRun(model)(rows), what, squash=squashed)
        # A sigmoid hides large differences; and far out, what cancels in an inner layer may round
        # by more than the last one's terms say.
        plain = KerasRun(model, squash=False)(rows)
        check_agreement(in_double, rows, plain, what, rounded=scale > 1)


@dataclass
class _LayerReader:
    """One pass over the layers; before the first one that computes, values are blocks of the inputs."""

    model: KerasModel
    builder: NetworkBuilder = field(default_factory=NetworkBuilder)
    blocks: dict[str, Block] = field(default_factory=dict)
    value: str = ""  # the layer whose value the network has so far
    n_columns: int = 0
    squashed: Squash | None = None
    squashed_at: str = ""

    def network(self) -> Network:
        """Take every layer in turn."""
        layers = {one.name: one for one in self.model.layers}
        for name in self.model.entries:
            width = input_width(layers[name])
            self.blocks[name] = _shaped(inputs(width, self.n_columns), (width,))
            self.n_columns += width
        for layer in self.model.layers:
            if layer.kind != "InputLayer":
                _refuse_cut([layers[name] for name in layer.inbound], layer)
                self._step(layer)
        if self.model.end in self.blocks:
            self._begin(self.model.end)
        if self.value != self.model.end:
            raise NetworkError(f"the model's output must be its last layer, got {self.model.end!r}")
        squash = self.squashed in ("sigmoid", "softmax")
        network = self.builder.network(sigmoid=squash, source=self.model.precision)
        return network if self.squashed != "log_softmax" else with_log_softmax(network)

    def _begin(self, name: str) -> None:
        if self.value:
            raise NetworkError(
                f"layer {name!r} stands beside another branch; branches and skip connections are not read, only blocks of the inputs"
            )
        block = self.blocks[name]
        if block.size != block.shape[-1]:
            raise NetworkError(
                f"layer {name!r} gives {list(block.shape)} values a person, not one row of them; add a Flatten layer after it"
            )
        self.builder.enter(list(block.ravel()), self.n_columns)
        self.value = name

    def _step(self, layer: KerasLayer) -> None:
        if layer.kind in KINDS:
            check_arrays(layer)
        if self.squashed and layer.kind not in SAME:
            raise refuse_smooth(self.squashed, self.squashed_at)
        if layer.inbound and all(name in self.blocks for name in layer.inbound):
            if self._on_blocks(layer):
                return
            if len(layer.inbound) == 1:
                self._begin(layer.inbound[0])
        if layer.inbound != (self.value,):
            raise NetworkError(
                f"{layer.where} must take the layer before it; branches and skip connections are not read, only blocks of the inputs"
            )
        self._take(layer)
        self.value = layer.name

    def _on_blocks(self, layer: KerasLayer) -> bool:
        """Take what may be done to parts of the inputs; False where a layer begins."""
        if layer.kind == "Concatenate":
            parts = [self.blocks[name] for name in layer.inbound]
            axis = layer.config.get("axis", -1) % (1 + parts[0].ndim)  # 0 are the people
            if axis == 0:
                raise NetworkError(f"{layer.where} must join columns (axis -1)")
            self.blocks[layer.name] = np.concatenate(parts, axis=axis - 1)
            return True
        if len(layer.inbound) != 1:
            return False
        block = self.blocks[layer.inbound[0]]
        if layer.kind == "Embedding":
            table = matrix_of(layer)
            looked_up = embedded(list(block.ravel()), table, layer.where)
            self.blocks[layer.name] = _shaped(looked_up, (*block.shape, table.shape[1]))
        elif layer.kind in SAME:
            self.blocks[layer.name] = _reshaped(block, layer)
        elif layer.kind in SCALINGS:
            self.blocks[layer.name] = _scaled(block, layer)
        else:
            return False
        return True

    def _take(self, layer: KerasLayer) -> None:
        """Take a layer on the one value that the layers so far give."""
        match layer.kind:
            case "Dense":
                kernel = matrix_of(layer)
                has_bias = len(layer.arrays) > 1
                bias = (
                    np.asarray(layer.arrays[1], dtype=np.float64)
                    if has_bias
                    else np.zeros(kernel.shape[1])
                )
                self.builder.linear(kernel.T, bias)
                self._activate(layer.config.get("activation", "linear"), layer)
            case "Activation":
                self._activate(layer.config["activation"], layer)
            case "ReLU" | "LeakyReLU" | "PReLU":
                self.builder.activate(
                    layer_activation(layer.kind, layer.config, layer), layer.where
                )
            case "Softmax":
                check_last_axis(layer)
                self._activate("softmax", layer)
            case "BatchNormalization" | "Normalization" | "Rescaling":
                check_last_axis(layer)
                width = self.builder.width or self.n_columns
                if layer.kind == "BatchNormalization":
                    self.builder.batch_norm(batch_norm_of(layer, width), layer.where)
                    return
                factors, shifts = scaling_of(layer, width)
                self.builder.scale(
                    np.array([float(one) for one in factors]),
                    np.array([float(one) for one in shifts]),
                    width,
                )
            case "Reshape":
                if any(size != 1 for size in layer.config["target_shape"][:-1]):
                    raise NetworkError(f"{layer.where} must keep the values in one row")
            case kind if kind in SAME:
                pass
            case _:
                raise NetworkError(f"{layer.where} is not one that FETA reads; it reads {READ}")

    def _activate(self, told: object, layer: KerasLayer) -> None:
        """Take an activation, told by its name or as a layer of its own."""
        if isinstance(told, dict):
            kind, config = str(told.get("class_name", "")), told.get("config", {})
            check_class(told, f"the activation of {layer.where}")
            if kind in ("ReLU", "LeakyReLU"):
                policy_of(config, f"the activation of {layer.where}")
                self.builder.activate(layer_activation(kind, config, layer), layer.where)
                return
            told = config if isinstance(config, str) else kind
        name = str(told)
        if name == "linear":
            return
        if name in SQUASHES:
            self._squash(SQUASHES[name], layer)
            return
        if name.replace("_", "") in SMOOTH:
            raise refuse_smooth(name, f"the activation {name!r} of {layer.where}")
        self.builder.activate(named_activation(name, self.model.version, layer), layer.where)

    def _squash(self, kind: Squash, layer: KerasLayer) -> None:
        width = self.builder.width or self.n_columns
        where = f"the activation {kind!r} of {layer.where}"
        if (kind == "sigmoid") != (width == 1):
            raise refuse_smooth(kind, where)
        self.squashed, self.squashed_at = kind, where


def input_width(layer: KerasLayer) -> int:
    """Tell how many columns an input has."""
    shape = layer.config.get("batch_shape") or layer.config.get("batch_input_shape") or []
    if len(shape) != 2 or not isinstance(shape[1], int) or shape[1] < 1:  # noqa: PLR2004 - rows and columns
        raise NetworkError(
            f"the input {layer.name!r} must be rows of numbers, got the shape {shape}"
        )
    return shape[1]


def _refuse_cut(taken: list[KerasLayer], layer: KerasLayer) -> None:
    """Refuse inputs that Keras cuts down to whole numbers, except to look them up."""
    for one in taken:
        if one.whole and layer.kind != "Embedding":
            message = f"the input {one.name!r} of {one.config['dtype']} must go into an Embedding, got {layer.where}: Keras cuts its numbers to whole ones; make the input float32"
            raise NetworkError(message)


def _shaped(signals: Signals, shape: tuple[int, ...]) -> Block:
    return np.array(signals, dtype=object).reshape(shape)


def _reshaped(block: Block, layer: KerasLayer) -> Block:
    """Give a block the shape that a layer gives it: values row by row."""
    if layer.kind == "Reshape":
        return block.reshape(
            [-1 if size is None else size for size in layer.config["target_shape"]]
        )
    if layer.kind != "Flatten":
        return block
    if layer.config.get("data_format") == "channels_first":
        block = np.moveaxis(block, 0, -1)
    return block.ravel()


def _scaled(block: Block, layer: KerasLayer) -> Block:
    """Scale a block's values, each by its place on the last axis."""
    check_last_axis(layer, block.ndim)
    pairs = list(zip(*scaling_of(layer, block.shape[-1]), strict=True))
    scaled = [
        one.scaled(*pairs[index % len(pairs)]) for index, one in enumerate(block.ravel().tolist())
    ]
    return _shaped(scaled, block.shape)
