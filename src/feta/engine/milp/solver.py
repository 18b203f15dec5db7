"""Solver: what is kept of a model from person to person: terms, scaled network, the solver's own model."""

from typing import Literal

from feta.arrays import Vector
from feta.bounds import interval, linear
from feta.bounds.first_layer import FirstLayer, Terms
from feta.bounds.over_parts import OverParts
from feta.box import Box
from feta.engine.milp.backends.protocol import Backend, Session
from feta.engine.milp.encoding import Encoded, encode
from feta.engine.milp.equilibrate import equilibrate
from feta.engine.milp.tighten import tighten
from feta.model import Model
from feta.rule import Objective
from feta.space.parts import Parts

Bounds = Literal["interval", "linear", "lp"]


class Solver:
    """A model made ready for one backend; it does not hold the model itself, which may be dropped."""

    def __init__(self, model: Model, backend: Backend, bounds: Bounds) -> None:
        self.network, self.backend, self.bounds = model.network, backend, bounds
        self.terms = Terms.of(model)
        self.scaled = equilibrate(model)
        self._whole = Parts.whole(self.terms.dimensions)
        self._sessions: dict[str, Session] = {}

    def session(self, kind: str) -> Session:
        """Give the session of a kind of question."""
        if kind not in self._sessions:
            self._sessions[kind] = self.backend.session()
        return self._sessions[kind]

    def over(self, model: Model, person: Vector, goal: Objective) -> OverParts:
        """Bound an objective over all counterparts of a person."""
        return OverParts.of(model, self.terms, person, self._whole, goal)

    def encode(self, over: OverParts, *, maximize: bool, listed: bool = False) -> Encoded:
        """Write the program of one person and one objective."""
        boxes = self._boxes(over.first, over.boxes)
        return encode(
            self.scaled, over.first, boxes, over.goal, maximize=maximize, listed=listed
        )

    def _boxes(self, first: FirstLayer, hidden: list[Box]) -> list[Box]:
        """Bound all layers as the engine was told to; `hidden` are the linear bounds but the last."""
        if not self.network.layers:
            return [first.box()]
        if self.bounds == "interval":
            return interval.forward(self.network, first.box())
        if self.bounds == "lp":
            return tighten(self.network, self.scaled, first)
        return [*hidden, linear.next_layer(self.network, first, hidden)]
