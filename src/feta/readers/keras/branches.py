"""Keras models whose layers are no chain: skip connections, towers, joined layers."""

import numpy as np

from feta.errors import NetworkError
from feta.readers.keras.chain import KINDS, NO_OPS, SUMS, LayerReader
from feta.readers.keras.file import KerasLayer, KerasModel
from feta.readers.keras.layers import check_arrays, check_last_axis
from feta.scorer.network.activation import refuse_smooth
from feta.scorer.network.agreement import Squash
from feta.scorer.network.branches import Branch, BranchBuilder
from feta.scorer.network.builder import NetworkBuilder
from feta.scorer.network.smooth.activation import Smooth


class BranchReader(LayerReader):
    """The state of one pass over layers whose values several later layers may read."""

    def __init__(self, model: KerasModel) -> None:
        super().__init__(model)
        self.branches: dict[str, Branch] = {}
        self.current: Branch | None = None  # what the next layer is appended to
        self.steps: BranchBuilder | None = None

    @property
    def builder(self) -> NetworkBuilder | Branch:
        """What the next layer is appended to."""
        return self.current or self.trunk

    def chain(self) -> NetworkBuilder:
        """Return the layers of a network, when all layers of the model are read."""
        branch = self._branch(self.model.end)
        return branch.graph.lower(branch)

    def _branch(self, name: str) -> Branch:
        if self.steps is None:  # all inputs are known by now
            self.steps = BranchBuilder(self.n_columns)
        if name in self.blocks:
            return self.steps.entry(self.row_of(name))
        return Branch(self.steps, self.branches[name].node)

    def _read_layer(self, layer: KerasLayer) -> None:
        if layer.kind in KINDS:
            check_arrays(layer)
        in_blocks = layer.inbound and all(name in self.blocks for name in layer.inbound)
        if in_blocks and self._read_on_blocks(layer):
            return
        parts = [self._branch(name) for name in layer.inbound]
        if layer.kind == "Concatenate":
            check_last_axis(layer)
            self.branches[layer.name] = parts[0].graph.join(parts)
        elif layer.kind in SUMS:
            self.branches[layer.name] = _sum(parts, layer)
        elif len(parts) == 1:
            self.current = parts[0]
            self._add_layer(layer)
            self.branches[layer.name] = self.current
        else:
            raise NetworkError(
                f"{layer.where} combines {len(parts)} values that depend on the input; of several "
                "values, only Add, Subtract and Concatenate are supported"
            )

    def _set_squash(self, kind: Squash, layer: KerasLayer) -> None:
        if self._leads_to_output(layer.name):
            super()._set_squash(kind, layer)
        elif kind == "sigmoid":
            self.builder.activate(Smooth("sigmoid"), layer.where)
        else:
            raise refuse_smooth(kind, f"the activation {kind!r} of {layer.where}")

    def _leads_to_output(self, name: str) -> bool:
        while name != self.model.end:
            readers = [layer for layer in self.model.layers if name in layer.inbound]
            if len(readers) != 1 or readers[0].kind not in NO_OPS:
                return False
            name = readers[0].name
        return not any(name in layer.inbound for layer in self.model.layers)


def _sum(parts: list[Branch], layer: KerasLayer) -> Branch:
    if len(parts) < 2 or (layer.kind == "Subtract" and len(parts) != 2):  # noqa: PLR2004 - a pair
        raise NetworkError(
            f"{layer.where} reads an unsupported number of values: got {len(parts)}; expected 2"
        )
    if layer.kind == "Subtract":
        width = parts[1].width
        parts[1].scale(np.full(width, -1.0), np.zeros(width), width)
    total, *others = parts
    for other in others:
        total = total.graph.total(total, other, layer.where)
    return total
