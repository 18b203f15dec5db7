"""Counterexamples: pairs of counterparts with different decisions, replayed exactly."""

from dataclasses import InitVar, dataclass, field
from typing import Any, Literal, Self

import numpy as np

from feta.arrays import Flags, Matrix, Vector, frozen
from feta.errors import CertificateError
from feta.model import Model
from feta.rule.comparator import UNDECIDED
from feta.rule.protocol import Rule

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
        replayed = _replay(model, self.person, self.counterpart)
        if isinstance(replayed, str):
            raise CertificateError(f"invalid counterexample: got two people {replayed}")
        self._set(replayed)

    def _set(self, values: dict[str, Any]) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @classmethod
    def witness(cls, model: Model, person: Vector, other: Vector) -> Self | None:
        """Replay two people; return None if they are no counterexample."""
        if model.rule.tolerance is None:
            return cls.witnesses(model, person[None, :], other[None, :])[0]
        replayed = _replay(model, person, other)
        if isinstance(replayed, str):
            return None
        pair = object.__new__(cls)
        pair._set(replayed)
        return pair

    @classmethod
    def witnesses(cls, model: Model, people: Matrix, others: Matrix) -> list[Self | None]:
        """Replay many pairs of decisions together; None where a pair is no counterexample."""
        replayed = _replay_decisions(model, people, others) if len(people) else []
        pairs: list[Self | None] = []
        for values in replayed:
            pair = None if values is None else object.__new__(cls)
            if pair is not None and values is not None:
                pair._set(values)  # noqa: SLF001 - the same class
            pairs.append(pair)
        return pairs

    def margins(self, rule: Rule) -> Vector:
        """Return the margin of the person and that of the counterpart, for display."""
        return rule.margins(self.decisions, self.scores)


def _replay(model: Model, person: Vector, counterpart: Vector) -> dict[str, Any] | str:
    """Evaluate a pair exactly; return its results, or why it proves nothing."""
    person, counterpart = frozen(person), frozen(counterpart)
    pair = np.stack([person, counterpart])
    model.space.check(pair)
    if not model.relation.related(person, counterpart):
        return (
            "who are not related, for example because they differ in a column that is not "
            "sensitive; expected counterparts"
        )
    points = model.points(pair)
    scores = points.exact_scores(np.arange(2))
    if not model.rule.separates(scores):
        return (
            "with the same decision, or scores within the tolerance, in exact arithmetic; "
            "expected different decisions"
        )
    runtime_safe = model.rule.differs_in_runtime(scores[:1], model.runtime_scores(points))[1]
    floats = scores.floats()
    return {
        "person": person,
        "counterpart": counterpart,
        "scores": frozen(floats[:, 0] if floats.shape[1] == 1 else floats),
        "decisions": model.rule.pair_decisions(scores),
        "gap": model.rule.gap(scores),
        "runtime": "safe" if runtime_safe else "sensitive",
        "fingerprint": model.fingerprint,
    }


def _replay_decisions(model: Model, people: Matrix, others: Matrix) -> list[dict[str, Any] | None]:
    """Evaluate pairs exactly, all people together; None where a pair proves nothing.

    Each pair gets what `_replay` returns for it alone.
    """
    count, rule = len(people), model.rule
    rows = frozen(np.concatenate([people, others]))
    model.space.check(rows)
    points = model.points(rows)
    exact = points.exact_scores(np.arange(2 * count))
    decisions = rule.decide_exactly(exact)
    runtime = rule.decide(model.runtime_scores(points))
    own, other = decisions[:count], decisions[count:]
    proved = (own != other) & (own != UNDECIDED) & (other != UNDECIDED)
    proved &= _related(model, rows)
    known = (runtime[:count] != UNDECIDED) & (runtime[count:] != UNDECIDED)
    runtime_safe = known & (runtime[count:] != own)
    chosen = np.flatnonzero(proved)
    distances = rule.gaps(exact[chosen], exact[count + chosen]).tolist()
    gaps = dict(zip(chosen.tolist(), distances, strict=True))
    floats = exact.floats()
    scores = frozen(np.stack([floats[:count], floats[count:]], axis=1))
    scores = scores[:, :, 0] if floats.shape[1] == 1 else scores
    pairs, labels = list(zip(own.tolist(), other.tolist(), strict=True)), runtime_safe.tolist()
    results: list[dict[str, Any] | None] = [None] * count
    for row in chosen.tolist():
        results[row] = {
            "person": rows[row],
            "counterpart": rows[count + row],
            "scores": scores[row],
            "decisions": pairs[row],
            "gap": gaps[row],
            "runtime": "safe" if labels[row] else "sensitive",
            "fingerprint": model.fingerprint,
        }
    return results


def _related(model: Model, rows: Matrix) -> Flags:
    """Return which people are counterparts of each other: the first half, the second half."""
    relation, count = model.relation, len(rows) // 2
    if not relation.has_key:
        pairs = zip(rows[:count], rows[count:], strict=True)
        return np.array([relation.related(*pair) for pair in pairs], dtype=bool)
    keys, admitted = relation.keys(rows), relation.admits(rows)
    equal = np.array([keys[row] == keys[count + row] for row in range(count)], dtype=bool)
    return np.asarray(equal & admitted[:count] & admitted[count:])
