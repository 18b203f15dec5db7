"""The encoder of a network: bounds its layers, then writes the program."""

from collections.abc import Callable

from feta.arrays import Vector
from feta.bounds import interval, linear
from feta.bounds.first_layer import FirstLayer, Terms
from feta.bounds.linear import Layer
from feta.interval_box import IntervalBox
from feta.scorer.cell_bounds import CellBounds
from feta.scorer.network.cell_bounds import NetworkCellBounds
from feta.scorer.network.milp.encoding import Encoded, encode
from feta.scorer.network.milp.equilibrate import equilibrate
from feta.scorer.network.milp.tighten import tighten
from feta.scorer.network.network import Network
from feta.scorer.program_encoder import LpSession, ProgramBounds


class NetworkEncoder:
    """A network prepared for programs; the same for all people."""

    def __init__(
        self,
        network: Network,
        terms: Terms,
        magnitudes: Vector,
        bounds: ProgramBounds,
        lp_session: Callable[[], LpSession],
    ) -> None:
        self.network, self.terms, self.bounds = network, terms, bounds
        self.lp_session = lp_session
        self.scaled = equilibrate(network, magnitudes)

    def encode(
        self, bounds: CellBounds, person: Vector, *, maximize: bool, listed: bool
    ) -> Encoded:
        """Write the program for one person over the cells that the bounds leave undecided."""
        assert isinstance(bounds, NetworkCellBounds)  # of this network
        cell, hidden = bounds.enclose_undecided()
        first = self.terms.at(person, cell)
        boxes = self._boxes(first, hidden)
        return encode(self.scaled, first, boxes, bounds.objective, maximize=maximize, listed=listed)

    def _boxes(self, first: FirstLayer, hidden: list[IntervalBox]) -> list[IntervalBox]:
        """Bound all layers; `hidden` has the linear bounds of all but the last."""
        network = self.network
        if not network.layers:
            return [first.box()]
        if self.bounds == "interval":
            return interval.forward(network, first.box())
        if self.bounds == "lp":
            return tighten(network, self.scaled, first, hidden, self.lp_session)
        layers = [Layer.of(*pair) for pair in zip(network.activations, hidden, strict=True)]
        return [*hidden, linear.next_box(network, first, layers)]
