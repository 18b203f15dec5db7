"""Counterexamples: pairs of counterparts with different decisions, replayed exactly."""

from collections.abc import Callable
from dataclasses import InitVar, dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from feta.arrays import Array, Flags, Matrix, Vector, frozen
from feta.dyadic import Dyadic
from feta.errors import CertificateError
from feta.model import Model
from feta.rule.comparator import UNDECIDED, Decisions
from feta.rule.intervals import interval_ends
from feta.rule.protocol import Rule
from feta.scorer.exact_scores import ExactScores
from feta.scorer.protocol import Points, balls_of

RuntimeStatus = Literal["safe", "sensitive"]

# The scores and the gap of a pair, and of many pairs.
Numbers = tuple[Vector | Matrix, float]
ManyNumbers = tuple[Array, Vector]

Balls = Callable[[Matrix, int], ExactScores]

# Balls of few bits nearly always decide how a number is rounded; balls of many bits do the rest.
FEW_BITS, MANY_BITS = 128, 1024


class _Late:
    """Scores and gap of a pair that are computed when one of them is first read."""

    __slots__ = ("compute",)

    compute: Callable[[], Numbers]

    if not TYPE_CHECKING:  # a checker would accept every name

        def __getattr__(self, name: str) -> object:
            """Compute the numbers; Python asks here for attributes that are not set."""
            if name not in ("scores", "gap"):
                kind = type(self).__name__
                raise AttributeError(f"{kind!r} object has no attribute {name!r}")
            numbers = dict(zip(("scores", "gap"), self.compute(), strict=True))
            for known, value in numbers.items():
                object.__setattr__(self, known, value)
            return numbers[name]


@dataclass(frozen=True, slots=True, eq=False)
class Counterexample(_Late):
    """A person and a counterpart that get different decisions, proved in exact arithmetic.

    The constructor replays the pair and rejects one that proves nothing. Regression: two
    counterparts of the person in the query, the lower score first; often neither is that person.
    Float64 with a proved bound decides pairs of smooth networks where it can. Their scores and gap
    are rounded from balls of up to 1,024 bits, when one of them is first read.
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
    """Decide pairs exactly, all people together; None where a pair proves nothing.

    Each pair gets what `_replay` returns for it alone.
    """
    count = len(people)
    rows = frozen(np.concatenate([people, others]))
    model.space.check(rows)
    points, balls = model.points(rows), balls_of(model.scorer)
    exact = points.exact_scores(np.arange(2 * count)) if balls is None else None
    decisions, runtime_safe = _decide(model, points, exact)
    own, other = decisions[:count], decisions[count:]
    proved = (own != other) & (own != UNDECIDED) & (other != UNDECIDED)
    proved &= _related(model, rows)
    chosen = np.flatnonzero(proved)
    both = np.concatenate([chosen, count + chosen])
    late = None if balls is None else _LateNumbers(model.rule, balls, rows[both])
    scores, gaps = _numbers(model.rule, exact[both]) if exact is not None else ((), ())
    labels = (runtime_safe[:count] & runtime_safe[count:]).tolist()
    pairs = list(zip(own.tolist(), other.tolist(), strict=True))
    results: list[dict[str, Any] | None] = [None] * count
    for index, row in enumerate(chosen.tolist()):
        values: dict[str, Any] = {
            "person": rows[row],
            "counterpart": rows[count + row],
            "decisions": pairs[row],
            "runtime": "safe" if labels[row] else "sensitive",
            "fingerprint": model.fingerprint,
        }
        if late is None:
            values["scores"], values["gap"] = scores[index], float(gaps[index])
        else:
            values["compute"] = partial(late.of, index)
        results[row] = values
    return results


def _decide(model: Model, points: Points, exact: ExactScores | None) -> tuple[Decisions, Flags]:
    """Return decisions, and which of them the runtime shares; without scores, float64 is first."""
    if exact is None:
        batch = model.resolve(points, model.rule)
        return batch.decisions, batch.runtime_safe
    decisions = model.rule.decide_exactly(exact)
    runtime = model.rule.decide(model.runtime_scores(points))
    return decisions, (runtime != UNDECIDED) & (runtime == decisions)


def _numbers(rule: Rule, exact: ExactScores) -> ManyNumbers:
    """Round the scores and gaps of pairs: the first half of people, and the second."""
    n_pairs = len(exact) // 2
    floats = exact.floats()
    scores = frozen(np.stack([floats[:n_pairs], floats[n_pairs:]], axis=1))
    gaps = rule.gaps(exact[:n_pairs], exact[n_pairs:])
    return scores[:, :, 0] if floats.shape[1] == 1 else scores, gaps


@dataclass(eq=False)
class _LateNumbers:
    """The scores and gaps of pairs, computed together when the first one is read."""

    rule: Rule
    balls: Balls
    rows: Matrix  # the people, then their counterparts

    def of(self, index: int) -> Numbers:
        """Return the scores and the gap of a pair."""
        scores, gaps = self._all
        return scores[index], float(gaps[index])

    @cached_property
    def _all(self) -> ManyNumbers:
        if self.rule.outputs > 1:  # a gap reads several scores
            return _numbers(self.rule, self.balls(self.rows, MANY_BITS))
        few = self.balls(self.rows, FEW_BITS)
        scores, gaps = _numbers(self.rule, few)
        rest = np.flatnonzero(~_rounded_alike(self.rule, few))
        if rest.size:
            both = np.concatenate([rest, len(self.rows) // 2 + rest])
            better = _numbers(self.rule, self.balls(self.rows[both], MANY_BITS))
            scores, gaps = scores.copy(), gaps.copy()
            scores[rest], gaps[rest] = better
        return frozen(scores), gaps


def _rounded_alike(rule: Rule, balls: ExactScores) -> Flags:
    """Return for which pairs all points of the balls have the same rounded scores and gap.

    A gap of one score each is monotonic in both, so its extremes are at the ends of the balls.
    """
    n_pairs = len(balls) // 2
    narrow = balls.radius.compare(Dyadic.of(1.0))[:, 0] <= 0  # unknown scores have huge radii
    alike = narrow[:n_pairs] & narrow[n_pairs:]
    pairs = np.flatnonzero(alike)
    ends = [
        (ExactScores(end[pairs]), ExactScores(end[n_pairs + pairs])) for end in interval_ends(balls)
    ]
    gaps = [rule.gaps(person, other) for person, _ in ends for _, other in ends]
    scores = [np.hstack([person.floats(), other.floats()]) for person, other in ends]
    alike[pairs] = (np.ptp(gaps, axis=0) == 0) & (scores[0] == scores[1]).all(axis=1)
    return np.asarray(alike)


def _related(model: Model, rows: Matrix) -> Flags:
    """Return which people are counterparts of each other: the first half, the second half."""
    relation, count = model.relation, len(rows) // 2
    if not relation.has_key:
        pairs = zip(rows[:count], rows[count:], strict=True)
        return np.array([relation.related(*pair) for pair in pairs], dtype=bool)
    keys, admitted = relation.keys(rows), relation.admits(rows)
    equal = np.array([keys[row] == keys[count + row] for row in range(count)], dtype=bool)
    return np.asarray(equal & admitted[:count] & admitted[count:])
