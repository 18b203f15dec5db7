"""Solver: what is kept of a model from person to person: terms, scaled network, the solver's own model."""

from threading import Lock
from typing import Literal

from feta.arrays import Vector
from feta.bounds import interval, linear
from feta.bounds.cell_bounds import CellBounds
from feta.bounds.first_layer import FirstLayer, Terms
from feta.bounds.linear import Layer
from feta.engine.milp.backends.protocol import Backend, Session
from feta.engine.milp.encoding import Encoded, encode
from feta.engine.milp.equilibrate import equilibrate
from feta.engine.milp.tighten import tighten
from feta.engine.partition import partition
from feta.interval_box import IntervalBox
from feta.model import Model
from feta.rule import Objective

# "interval" and "linear" bound all counterparts as one; "parts", linear bounds over many parts, leaves
# out those that are settled; "lp" adds a linear program a neuron.
Bounds = Literal["interval", "linear", "parts", "lp"]

# Bounded in one go: twice as many bring little more.
N_PARTS = 64


class Solver:
    """A model made ready for one backend; it does not hold the model itself, which may be dropped."""

    def __init__(self, model: Model, backend: Backend, bounds: Bounds) -> None:
        self.network, self.backend, self.bounds = model.network, backend, bounds
        self.terms = Terms.of(model)
        self.scaled = equilibrate(model)
        self.by_parts = bounds in ("parts", "lp")
        n_parts = N_PARTS if self.by_parts else 1
        self._parts, self.partition = partition(model.network, self.terms, n_parts)
        self._sessions: dict[str, Session] = {}
        self.lock = Lock()  # a session's program is one person's at a time

    def session(self, kind: str) -> Session:
        """Give the session of a kind of question."""
        if kind not in self._sessions:
            self._sessions[kind] = self.backend.session()
        return self._sessions[kind]

    def over(self, model: Model, person: Vector, goal: Objective) -> CellBounds:
        """Bound an objective over all counterparts of a person, part by part."""
        return CellBounds.of(model, self.terms, person, self._parts, goal)

    def encode(
        self, over: CellBounds, person: Vector, *, maximize: bool, listed: bool = False
    ) -> Encoded:
        """Write the program of one person and one objective."""
        part, hidden = over.open()
        first = self.terms.at(person, part)
        boxes = self._boxes(first, hidden)
        return encode(self.scaled, first, boxes, over.goal, maximize=maximize, listed=listed)

    def _boxes(self, first: FirstLayer, hidden: list[IntervalBox]) -> list[IntervalBox]:
        """Bound all layers as the engine was told to; `hidden` are the linear bounds but the last."""
        if not self.network.layers:
            return [first.box()]
        if self.bounds == "interval":
            return interval.forward(self.network, first.box())
        if self.bounds == "lp":
            return tighten(self.network, self.scaled, first, hidden)
        layers = [Layer.of(*one) for one in zip(self.network.activations, hidden, strict=True)]
        return [*hidden, linear.next_box(self.network, first, layers)]
