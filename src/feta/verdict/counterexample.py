"""Counterexamples: pairs of counterparts with different decisions, replayed exactly."""

from collections.abc import Callable
from dataclasses import InitVar, dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from feta.arrays import Counts, Flags, Matrix, Vector, frozen
from feta.errors import CertificateError
from feta.model import Model
from feta.rule.comparator import UNDECIDED, Decisions
from feta.rule.protocol import Rule
from feta.scorer.exact_scores import ExactScores
from feta.scorer.protocol import Points, scores_are_balls

RuntimeStatus = Literal["safe", "sensitive"]

# The scores and the gap of a pair.
Numbers = tuple[Vector | Matrix, float]


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
    Float64 with a proved bound decides pairs of smooth networks where it can. Their scores take
    balls of many bits, and are computed when they are first read.
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
    points = model.points(rows)
    decisions, runtime_safe, exact = _decide(model, points)
    own, other = decisions[:count], decisions[count:]
    proved = (own != other) & (own != UNDECIDED) & (other != UNDECIDED)
    proved &= _related(model, rows)
    chosen = np.flatnonzero(proved)
    numbers = _BatchNumbers(model.rule, points, chosen, exact)
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
        if exact is None:
            values["compute"] = partial(numbers.of, index)
        else:
            values["scores"], values["gap"] = numbers.of(index)
        results[row] = values
    return results


def _decide(model: Model, points: Points) -> tuple[Decisions, Flags, ExactScores | None]:
    """Return decisions, which of them the runtime shares, and exact scores unless they are dear."""
    if scores_are_balls(model.scorer):
        batch = model.resolve(points, model.rule)
        return batch.decisions, batch.runtime_safe, None
    exact = points.exact_scores(np.arange(len(points)))
    decisions = model.rule.decide_exactly(exact)
    runtime = model.rule.decide(model.runtime_scores(points))
    return decisions, (runtime != UNDECIDED) & (runtime == decisions), exact


@dataclass(eq=False)
class _BatchNumbers:
    """The scores and gaps of the pairs of a batch: of the first half of points, and the second."""

    rule: Rule
    points: Points
    chosen: Counts  # the pairs that are counterexamples
    exact: ExactScores | None  # of all points; None: computed when needed

    def of(self, index: int) -> Numbers:
        """Return the scores and the gap of one of the chosen pairs."""
        scores, gaps = self._all
        return scores[index], gaps[index]

    @cached_property
    def _all(self) -> tuple[Any, list[float]]:
        n_pairs = len(self.chosen)
        both = np.concatenate([self.chosen, len(self.points) // 2 + self.chosen])
        exact = self.points.exact_scores(both) if self.exact is None else self.exact[both]
        gaps = self.rule.gaps(exact[:n_pairs], exact[n_pairs:])
        floats = exact.floats()
        scores = frozen(np.stack([floats[:n_pairs], floats[n_pairs:]], axis=1))
        return scores[:, :, 0] if floats.shape[1] == 1 else scores, gaps.tolist()


def _related(model: Model, rows: Matrix) -> Flags:
    """Return which people are counterparts of each other: the first half, the second half."""
    relation, count = model.relation, len(rows) // 2
    if not relation.has_key:
        pairs = zip(rows[:count], rows[count:], strict=True)
        return np.array([relation.related(*pair) for pair in pairs], dtype=bool)
    keys, admitted = relation.keys(rows), relation.admits(rows)
    equal = np.array([keys[row] == keys[count + row] for row in range(count)], dtype=bool)
    return np.asarray(equal & admitted[:count] & admitted[count:])
