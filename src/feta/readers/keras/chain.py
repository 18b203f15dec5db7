"""One pass over the layers of a Keras model that are a chain.

Before the first layer that computes, values are blocks of the inputs. From there on, every layer
must read the one before it; `branches.py` reads other models.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from feta.errors import NetworkError
from feta.readers.keras.checks import check_class, policy_of
from feta.readers.keras.file import KerasLayer, KerasModel
from feta.readers.keras.layers import (
    batch_norm_of,
    check_arrays,
    check_last_axis,
    layer_activation,
    matrix_of,
    named_activation,
    scaling_of,
)
from feta.scorer.network.activation import SMOOTH, refuse_smooth
from feta.scorer.network.agreement import Squash, with_log_softmax
from feta.scorer.network.branches import Branch, BranchesError
from feta.scorer.network.builder import NetworkBuilder
from feta.scorer.network.input_blocks import Signals, embedded, inputs
from feta.scorer.network.network import Network
from feta.scorer.network.smooth.activation import NAMED_SMOOTH, Smooth

Block = np.ndarray[Any, np.dtype[np.object_]]  # of signals, in the shape that Keras gives them

# Layers that change nothing, or only a shape, in evaluation mode.
NO_OPS = {
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
SUMS = ("Add", "Subtract")
SQUASHES: dict[str, Squash] = {
    "sigmoid": "sigmoid",
    "softmax": "softmax",
    "log_softmax": "log_softmax",
}
KINDS = {
    *NO_OPS,
    *SCALINGS,
    *SUMS,
    "Activation",
    "Concatenate",
    "Dense",
    "Embedding",
    "LeakyReLU",
    "PReLU",
    "ReLU",
    "Softmax",
}
SUPPORTED = (
    "InputLayer, Dense, Activation, ReLU, LeakyReLU, PReLU, BatchNormalization, Normalization, "
    "Rescaling, Embedding of inputs, Concatenate, Add, Subtract, Dropout, Flatten and a last "
    "sigmoid or softmax"
)


@dataclass
class LayerReader:
    """The state of one pass over the layers.

    Before the first layer that computes, values are blocks of the inputs.
    """

    model: KerasModel
    trunk: NetworkBuilder = field(default_factory=NetworkBuilder)
    blocks: dict[str, Block] = field(default_factory=dict)
    value: str = ""  # the last layer that the network contains so far
    n_columns: int = 0
    squash: Squash | None = None
    squashed_at: str = ""
    squashed_by: str = ""  # the layer with the last sigmoid or softmax

    @property
    def builder(self) -> NetworkBuilder | Branch:
        """What the next layer is appended to."""
        return self.trunk

    def network(self) -> Network:
        """Read all layers in order."""
        layers = {layer.name: layer for layer in self.model.layers}
        for name in self.model.entries:
            width = input_width(layers[name])
            self.blocks[name] = _shape_block(inputs(width, self.n_columns), (width,))
            self.n_columns += width
        for layer in self.model.layers:
            if layer.kind != "InputLayer":
                _check_truncated_inputs([layers[name] for name in layer.inbound], layer)
                self._read_layer(layer)
        chain = self.chain()
        if self.squash == "sigmoid" and (chain.width or 1) > 1:
            raise NetworkError(
                f"{self.squashed_at} is the last step: got {chain.width} outputs; expected "
                "one; several sigmoids are several labels, not classes"
            )
        probabilities = self.squash in ("sigmoid", "softmax")
        network = chain.network(sigmoid=probabilities, source=self.model.precision)
        return network if self.squash != "log_softmax" else with_log_softmax(network)

    def chain(self) -> NetworkBuilder:
        """Return the layers of a network, when all layers of the model are read."""
        if self.model.end in self.blocks:
            self._enter_first_layer(self.model.end)
        if self.value != self.model.end:
            raise BranchesError(
                f"the model's output is not its last layer: got {self.model.end!r}; "
                f"expected {self.value!r}"
            )
        return self.trunk

    def _enter_first_layer(self, name: str) -> None:
        if self.value:
            raise BranchesError(f"layer {name!r} is on another branch")
        self.trunk.enter(self.row_of(name), self.n_columns)
        self.value = name

    def row_of(self, name: str) -> Signals:
        """Return a block that is one row of values."""
        block = self.blocks[name]
        if block.size != block.shape[-1]:
            raise NetworkError(
                f"layer {name!r} gives several rows of values per person: "
                f"got the shape {list(block.shape)}; expected one row; "
                "add a Flatten layer after it"
            )
        return list(block.ravel())

    def _read_layer(self, layer: KerasLayer) -> None:
        if layer.kind in KINDS:
            check_arrays(layer)
        if self.squash and layer.kind not in NO_OPS:
            self._continue_after_squash()
        if layer.inbound and all(name in self.blocks for name in layer.inbound):
            if self._read_on_blocks(layer):
                return
            if len(layer.inbound) == 1:
                self._enter_first_layer(layer.inbound[0])
        if layer.inbound != (self.value,):
            raise BranchesError(f"{layer.where} does not read the layer before it")
        self._add_layer(layer)
        self.value = layer.name

    def _read_on_blocks(self, layer: KerasLayer) -> bool:
        """Read a layer on parts of the inputs; return False if the network begins."""
        if layer.kind == "Concatenate":
            parts = [self.blocks[name] for name in layer.inbound]
            axis = layer.config.get("axis", -1) % (1 + parts[0].ndim)  # axis 0 are the people
            if axis == 0:
                raise NetworkError(f"{layer.where} joins people; expected columns (axis -1)")
            self.blocks[layer.name] = np.concatenate(parts, axis=axis - 1)
            return True
        if len(layer.inbound) != 1 or layer.kind in SUMS:
            return False
        block = self.blocks[layer.inbound[0]]
        if layer.kind == "Embedding":
            table = matrix_of(layer)
            signals = embedded(list(block.ravel()), table, layer.where)
            self.blocks[layer.name] = _shape_block(signals, (*block.shape, table.shape[1]))
        elif layer.kind in NO_OPS:
            self.blocks[layer.name] = _reshape_block(block, layer)
        elif layer.kind in SCALINGS:
            self.blocks[layer.name] = _scale_block(block, layer)
        else:
            return False
        return True

    def _add_layer(self, layer: KerasLayer) -> None:
        """Add a layer after those read so far."""
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
                    np.array([float(factor) for factor in factors]),
                    np.array([float(shift) for shift in shifts]),
                    width,
                )
            case "Reshape":
                if any(size != 1 for size in layer.config["target_shape"][:-1]):
                    raise NetworkError(
                        f"{layer.where} changes the shape: got {layer.config['target_shape']}; "
                        "expected one row of values"
                    )
            case kind if kind in NO_OPS:
                pass
            case _:
                raise NetworkError(f"{layer.where} is not supported; expected {SUPPORTED}")

    def _activate(self, activation: object, layer: KerasLayer) -> None:
        """Add an activation, given by its name or as a layer."""
        if isinstance(activation, dict):
            kind, config = str(activation.get("class_name", "")), activation.get("config", {})
            check_class(activation, f"the activation of {layer.where}")
            if kind in ("ReLU", "LeakyReLU"):
                policy_of(config, f"the activation of {layer.where}")
                self.builder.activate(layer_activation(kind, config, layer), layer.where)
                return
            activation = config if isinstance(config, str) else kind
        name = str(activation)
        if name == "linear":
            return
        if name in SQUASHES:
            self._set_squash(SQUASHES[name], layer)
            return
        if name.replace("_", "") in NAMED_SMOOTH:
            self.builder.activate(Smooth(NAMED_SMOOTH[name.replace("_", "")]), layer.where)
            return
        if name.replace("_", "") in SMOOTH:
            raise refuse_smooth(name, f"the activation {name!r} of {layer.where}")
        self.builder.activate(named_activation(name, self.model.version, layer), layer.where)

    def _continue_after_squash(self) -> None:
        """Add a sigmoid that is not the last step as an activation; raise for a softmax."""
        if self.squash != "sigmoid":
            raise refuse_smooth(str(self.squash), self.squashed_at)
        self.builder.activate(Smooth("sigmoid"), self.squashed_at)
        self.squash = None

    def _set_squash(self, kind: Squash, layer: KerasLayer) -> None:
        """Record a last sigmoid or softmax; the scores are its inputs."""
        width = self.builder.width or self.n_columns
        where = f"the activation {kind!r} of {layer.where}"
        if kind != "sigmoid" and width == 1:
            raise refuse_smooth(kind, where)
        self.squash, self.squashed_at, self.squashed_by = kind, where, layer.name


def input_width(layer: KerasLayer) -> int:
    """Return the number of columns of an input."""
    shape = layer.config.get("batch_shape") or layer.config.get("batch_input_shape") or []
    if len(shape) != 2 or not isinstance(shape[1], int) or shape[1] < 1:  # noqa: PLR2004 - rows and columns
        raise NetworkError(
            f"the input {layer.name!r} has an unsupported shape: got {shape}; "
            "expected rows of numbers (None, columns)"
        )
    return shape[1]


def _check_truncated_inputs(sources: list[KerasLayer], layer: KerasLayer) -> None:
    """Reject inputs that Keras truncates to integers, unless they are looked up."""
    for source in sources:
        if source.truncates and layer.kind != "Embedding":
            raise NetworkError(
                f"the input {source.name!r} of {source.config['dtype']} is truncated to integers: "
                f"got {layer.where} after it; expected an Embedding; make the input float32"
            )


def _shape_block(signals: Signals, shape: tuple[int, ...]) -> Block:
    return np.array(signals, dtype=object).reshape(shape)


def _reshape_block(block: Block, layer: KerasLayer) -> Block:
    """Reshape a block as the layer does, in row-major order."""
    if layer.kind == "Reshape":
        return block.reshape(
            [-1 if size is None else size for size in layer.config["target_shape"]]
        )
    if layer.kind != "Flatten":
        return block
    if layer.config.get("data_format") == "channels_first":
        block = np.moveaxis(block, 0, -1)
    return block.ravel()


def _scale_block(block: Block, layer: KerasLayer) -> Block:
    """Scale a block's values, each by its index on the last axis."""
    check_last_axis(layer, block.ndim)
    pairs = list(zip(*scaling_of(layer, block.shape[-1]), strict=True))
    scaled = [
        signal.scaled(*pairs[index % len(pairs)])
        for index, signal in enumerate(block.ravel().tolist())
    ]
    return _shape_block(scaled, block.shape)
