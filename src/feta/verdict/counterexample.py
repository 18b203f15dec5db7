"""Counterexample: two counterparts decided apart; it can only be made by replaying them exactly."""

from dataclasses import InitVar, dataclass, field
from typing import Literal, Self

import numpy as np

from feta.arrays import Vector, frozen
from feta.errors import CertificateError
from feta.model import Model
from feta.network.points import Rows

Runtime = Literal["safe", "sensitive"]


@dataclass(frozen=True, slots=True, eq=False)
class Counterexample:
    """A person and a counterpart whose decisions differ, proved in exact arithmetic (S1)."""

    model: InitVar[Model]
    person: Vector
    counterpart: Vector
    scores: Vector = field(init=False)  # of the person and of the counterpart, rounded once
    decisions: tuple[int, int] = field(init=False)
    runtime: Runtime = field(init=False)

    def __post_init__(self, model: Model) -> None:
        pair = np.stack([self.person, self.counterpart])
        model.space.check(pair)
        shared = ~model.space.sensitive_columns
        if self.person[shared].tobytes() != self.counterpart[shared].tobytes():
            raise CertificateError(
                "the two people must agree on every column that is not sensitive"
            )
        points = Rows(model.exact, pair)
        scores = points.exact_scores(np.arange(2))
        decisions = model.rule.settle_exactly(scores)
        if decisions[0] == decisions[1]:
            raise CertificateError("the two people must be decided apart, but exact scores agree")
        safe = (model.rule.settle(model.runtime_scores(points)) == decisions).all()
        object.__setattr__(self, "person", frozen(self.person))
        object.__setattr__(self, "counterpart", frozen(self.counterpart))
        object.__setattr__(self, "scores", frozen(scores.floats()[:, 0]))
        object.__setattr__(self, "decisions", (int(decisions[0]), int(decisions[1])))
        object.__setattr__(self, "runtime", "safe" if safe else "sensitive")

    @classmethod
    def witness(cls, model: Model, person: Vector, other: Vector) -> Self | None:
        """Replay two people; None if they are not decided apart."""
        try:
            return cls(model, person, other)
        except CertificateError:
            return None

    @property
    def gap(self) -> float:
        """How far apart the two scores are."""
        return float(abs(self.scores[1] - self.scores[0]))
