"""Exact scores from the compiled kernel: the numbers of `exact.py`, many times faster."""

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from feta.arrays import Matrix
from feta.dyadic import Dyadic
from feta.scorer.native import native
from feta.scorer.network.table_rows import table_rows

if TYPE_CHECKING:
    from feta.scorer.network.network import Network


class NativeExact:
    """A network in the exact arithmetic of the kernel; it is built at first use."""

    def __init__(self, network: "Network") -> None:
        self.network = network

    def __reduce__(self) -> "tuple[type[NativeExact], tuple[Network]]":
        """Leave out the compiled object, which a copy builds again."""
        return NativeExact, (self.network,)

    @cached_property
    def _chain(self) -> Any:  # noqa: ANN401 - compiled
        first = self.network.first
        chain = native.ExactChain(np.ascontiguousarray(first.slopes.T), first.bias[None, :])
        for table in first.tables:
            chain.add_table(np.ascontiguousarray(table.rows))
        for activation, layer in self.network.steps:
            width = layer.weight.shape[1]
            pieces = (activation.breaks, activation.slopes, activation.intercepts)
            arrays = [np.broadcast_to(array, (len(array), width)) for array in pieces]
            chain.add_layer(
                *map(np.ascontiguousarray, arrays),
                np.ascontiguousarray(layer.weight),
                layer.bias[None, :],
            )
        return chain

    def scores(self, people: Matrix) -> Dyadic | None:
        """Compute the scores of people, (people, outputs).

        None if there is no kernel, or if it does not have integers of that size.
        """
        if native is None:
            return None
        people = np.ascontiguousarray(people, dtype=np.float64)
        result = self._chain.scores(people, table_rows(self.network.first, people))
        if result is None:
            return None
        data, size, exponent = result
        read = int.from_bytes
        integers = [
            read(data[start : start + size], "little", signed=True)
            for start in range(0, len(data), size)
        ]
        numerators = np.array(integers, dtype=object)
        return Dyadic(numerators.reshape(len(people), self.network.outputs), exponent)
