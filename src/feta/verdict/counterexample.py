"""Counterexample: two counterparts treated apart; it can only be made by replaying them exactly."""

from dataclasses import InitVar, dataclass, field
from typing import Literal, Self

import numpy as np

from feta.arrays import Matrix, Vector, frozen
from feta.errors import CertificateError
from feta.model import Model
from feta.rule import Argmax, OneVsRest, Rule, Tolerance, differs_in_runtime, separates
from feta.scorer.network.evaluation import Rows

RuntimeStatus = Literal["safe", "sensitive"]


@dataclass(frozen=True, slots=True, eq=False)
class Counterexample:
    """A person and a counterpart treated apart, proved in exact arithmetic.

    Regression: two counterparts of the person asked about, the lower score first; often neither is
    that person.
    """

    model: InitVar[Model]
    person: Vector
    counterpart: Vector
    scores: Vector | Matrix = field(init=False)  # of person and counterpart, rounded once
    decisions: tuple[int, ...] = field(init=False)  # of both; empty where scores are compared
    gap: float = field(init=False)  # how far on the other side the counterpart is, or scores apart
    runtime: RuntimeStatus = field(init=False)
    fingerprint: str = field(init=False)  # of the model it was replayed on

    def __post_init__(self, model: Model) -> None:
        object.__setattr__(self, "person", frozen(self.person))
        object.__setattr__(self, "counterpart", frozen(self.counterpart))
        pair = np.stack([self.person, self.counterpart])
        model.space.check(pair)
        shared = ~model.space.sensitive_columns
        if self.person[shared].tobytes() != self.counterpart[shared].tobytes():
            raise CertificateError(
                "the two people must agree on every column that is not sensitive"
            )
        points = Rows(model.exact, pair)
        scores = points.exact_scores(np.arange(2))
        if not separates(model.rule, scores):
            raise CertificateError("the two people must be treated apart, but exact scores agree")
        runtime_safe = differs_in_runtime(model.rule, scores[:1], model.runtime_scores(points))[1]
        decisions: tuple[int, ...] = ()
        if not isinstance(model.rule, Tolerance):
            decisions = tuple(model.rule.decide_exactly(scores).tolist())
        floats = scores.floats()
        object.__setattr__(self, "fingerprint", model.fingerprint)
        object.__setattr__(self, "scores", frozen(floats[:, 0] if floats.shape[1] == 1 else floats))
        object.__setattr__(self, "decisions", decisions)
        object.__setattr__(self, "gap", model.rule.gap(scores))
        object.__setattr__(self, "runtime", "safe" if runtime_safe else "sensitive")

    @classmethod
    def witness(cls, model: Model, person: Vector, other: Vector) -> Self | None:
        """Replay two people; None if they are not treated apart."""
        try:
            return cls(model, person, other)
        except CertificateError:
            return None

    def margins(self, rule: Rule) -> Vector:
        """Return one number for the person and one for the counterpart, for display.

        With one score it is the score. With several classes it is the score of the counterpart's
        class less that of the person's; with one class against the rest, the score of that class
        less the best other one.
        """
        match rule:
            case Argmax():
                mine, other = self.decisions
                return np.asarray(self.scores[:, other] - self.scores[:, mine])
            case OneVsRest(index=index):
                others = np.delete(self.scores, index, axis=1)
                return np.asarray(self.scores[:, index] - others.max(axis=1))
            case _:
                return self.scores
