"""Counterexamples: pairs of counterparts with different decisions, replayed exactly."""

from dataclasses import InitVar, dataclass, field
from typing import Literal, Self

import numpy as np

from feta.arrays import Matrix, Vector, frozen
from feta.errors import CertificateError
from feta.model import Model
from feta.rule import Argmax, OneVsRest, Rule, Tolerance, differs_in_runtime, separates

RuntimeStatus = Literal["safe", "sensitive"]


@dataclass(frozen=True, slots=True, eq=False)
class Counterexample:
    """A person and a counterpart that get different decisions, proved in exact arithmetic.

    The constructor replays the pair and rejects one that proves nothing. Regression: two
    counterparts of the person in the query, the lower score first; often neither is that person.
    """

    model: InitVar[Model]
    person: Vector
    counterpart: Vector
    scores: Vector | Matrix = field(init=False)  # of person and counterpart, rounded once
    decisions: tuple[int, ...] = field(init=False)  # of both; empty for regression
    gap: float = field(init=False)  # as defined by the rule (Eq. 4)
    runtime: RuntimeStatus = field(init=False)
    fingerprint: str = field(init=False)  # of the model that replayed the pair

    def __post_init__(self, model: Model) -> None:
        object.__setattr__(self, "person", frozen(self.person))
        object.__setattr__(self, "counterpart", frozen(self.counterpart))
        pair = np.stack([self.person, self.counterpart])
        model.space.check(pair)
        if not model.relation.related(self.person, self.counterpart):
            raise CertificateError(
                "invalid counterexample: got two people who are not related: they differ in "
                "a column that is not sensitive, or in another way; expected counterparts"
            )
        points = model.points(pair)
        scores = points.exact_scores(np.arange(2))
        if not separates(model.rule, scores):
            raise CertificateError(
                "invalid counterexample: got two people with the same decision, or scores within "
                "the tolerance, in exact arithmetic; expected different decisions"
            )
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
        """Replay two people; return None if they get the same decision."""
        try:
            return cls(model, person, other)
        except CertificateError:
            return None

    def margins(self, rule: Rule) -> Vector:
        """Return the margin of the person and that of the counterpart, for display.

        With one score, the margin is the score. With several classes, it is the score of the
        counterpart's class minus that of the person's class. With one class against the rest, it is
        the score of that class minus the best other score.
        """
        match rule:
            case Argmax():
                reference, other = self.decisions
                return np.asarray(self.scores[:, other] - self.scores[:, reference])
            case OneVsRest(index=index):
                others = np.delete(self.scores, index, axis=1)
                return np.asarray(self.scores[:, index] - others.max(axis=1))
            case _:
                return self.scores
