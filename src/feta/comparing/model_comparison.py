"""The comparison: candidates are fitted to one part of a table and measured on the other."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from feta.arrays import Counts, Flags, Matrix, Vector
from feta.comparing.candidate import Candidate
from feta.comparing.candidates import FitPeople, NamedModel, planned
from feta.errors import (
    DomainError,
    EngineError,
    MissingExtra,
    NetworkError,
    SchemaError,
    Undecided,
)
from feta.metrics.decision_figures import DecisionFigures, GroupPair, widest_pairs
from feta.metrics.equal_approval import equal_approval_gap
from feta.metrics.estimate import Estimate
from feta.metrics.overlap import Overlap, overlaps
from feta.metrics.proxy_measures import evenly
from feta.metrics.reinference import (
    AwareScores,
    Reinference,
    Score,
    SensitiveValues,
    reinference,
)
from feta.model import Model
from feta.progress import Advance

# With fewer people, half of the table is too small for any of the measures.
MIN_PEOPLE = 200

# People who are compared; more would narrow the intervals little.
MAX_PEOPLE = 20_000

# People on whom re-inference is measured, which needs the scores of many counterparts.
MAX_MEASURED = 2000

# Errors that leave one candidate out; the others are compared anyway.
LEFT_OUT = (DomainError, EngineError, MissingExtra, NetworkError, SchemaError, Undecided)


@dataclass(frozen=True, slots=True, eq=False)
class ComparedRow:
    """The figures of one candidate."""

    name: str
    about: str
    decisions: DecisionFigures
    equal_gaps: tuple[Estimate, ...]  # the gaps if it approves as many as the first model
    unfair: Estimate  # the share of people with a counterexample
    reinference: Reinference


@dataclass(frozen=True, slots=True, eq=False)
class LeftOut:
    """A candidate without figures."""

    name: str
    reason: str
    undecided: bool = False


@dataclass(eq=False)
class ModelComparison:
    """The figures so far; the first row is the first model as it is."""

    n_fitted: int
    n_measured: int
    n_scored: int  # people on whom re-inference is measured
    seed: int
    pairs: tuple[GroupPair, ...]
    overlaps: tuple[Overlap, ...]
    rows: list[ComparedRow] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    finished: bool = False

    @property
    def baseline(self) -> ComparedRow:
        """The first model as it is, from which all differences are taken."""
        return self.rows[0]


@dataclass(frozen=True, slots=True, eq=False)
class LabeledPeople:
    """People and labels, divided in two halves by a seed."""

    people: Matrix
    labels: Flags
    first: Counts  # rows to fit to
    second: Counts  # rows to measure

    @classmethod
    def split(cls, people: Matrix, labels: Any, seed: int) -> Self:  # noqa: ANN401 - 0 and 1
        """Check people and labels, and divide them."""
        favorable = np.asarray(labels, dtype=np.float64) == 1.0
        if len(people) < MIN_PEOPLE:
            raise DomainError(
                f"too few people: got {len(people)}; expected at least {MIN_PEOPLE}, because one "
                "half is fitted to and the other half is measured"
            )
        if favorable.all() or not favorable.any():
            which = "favorable" if favorable.all() else "unfavorable"
            raise DomainError(
                f"only one class: got {which} labels only; expected both decisions; check the "
                "label column and the names of the outcomes"
            )
        order = np.random.default_rng([seed, 5]).permutation(len(people))
        half = len(people) // 2
        first, second = np.sort(order[:half]), np.sort(order[half:])
        if len(np.unique(favorable[first])) == 1:
            raise DomainError(
                f"only one class in the half that is fitted to: got {len(first)} people with the "
                "same label; expected both decisions; choose another --seed, or more people"
            )
        return cls(people, favorable, first, second)


class Comparing:
    """Work in progress: one candidate after the other."""

    def __init__(
        self, models: list[NamedModel], data: LabeledPeople, *, epochs: int | None, seed: int
    ) -> None:
        for named in models:
            _check(named.model)
        self.models = models
        epochs = FitPeople.enough_epochs(len(data.first)) if epochs is None else epochs
        self.fit = FitPeople(data.people[data.first], data.labels[data.first], epochs, seed)
        self.people, self.labels = data.people[data.second], data.labels[data.second]
        space = models[0].model.space
        rows = evenly(len(self.people), MAX_MEASURED)
        self.scored = self.people[rows]
        self.values = SensitiveValues.of(space, self.scored)
        self.by_group: dict[Score, Matrix] = {}  # several candidates have the same aware score
        self.approved = np.asarray(models[0].model.decide(self.people), dtype=bool)
        self.result = ModelComparison(
            len(self.fit.people),
            len(self.people),
            len(self.scored),
            seed,
            widest_pairs(space, self.people, self.approved),
            overlaps(space, self.scored),
        )

    def run(self, advance: Advance) -> Iterator[str]:
        """Fit and measure each candidate; yield its name before. `result` is always complete."""
        plans = list(planned(self.models, self.fit))
        for index, plan in enumerate(plans):
            yield plan.name

            def report(share: float, index: int = index) -> None:
                advance((index + share) / len(plans))

            report(0.0)
            try:
                self.result.rows.append(self._measured(plan.make(report)))
            except LEFT_OUT as error:
                if index == 0:
                    raise
                undecided = isinstance(error, Undecided)
                self.result.left_out.append(LeftOut(plan.name, str(error), undecided))
        self.result.finished = True
        advance(1.0)

    def _measured(self, candidate: Candidate) -> ComparedRow:
        decisions = candidate.decide(self.people)
        return ComparedRow(
            candidate.name,
            candidate.about,
            DecisionFigures.of(decisions, self.labels, self.result.pairs),
            self._equal_gaps(candidate.score(self.people)),
            Estimate.share(candidate.unfair(self.people)),
            self._reinference(candidate),
        )

    def _reinference(self, candidate: Candidate) -> Reinference:
        if candidate.aware is None:
            return Reinference(None, None)
        if candidate.aware not in self.by_group:
            self.by_group[candidate.aware] = self.values.scores(candidate.aware, self.scored)
        aware = AwareScores(self.by_group[candidate.aware], self.values)
        measured = reinference(candidate.score(self.scored), aware)
        return measured if candidate.has_slope else replace(measured, slope=None)

    def _equal_gaps(self, scores: Vector) -> tuple[Estimate, ...]:
        """Return the gap of each pair if the first model's number of people are approved."""
        return tuple(
            equal_approval_gap(scores, self.approved, first=pair.first, second=pair.second)
            for pair in self.result.pairs
        )


def _check(model: Model) -> None:
    """Reject models that cannot be compared."""
    if model.rule.threshold is None:
        raise SchemaError(
            f"models with two decisions are compared: got the rule {model.rule!r}; expected a "
            "threshold"
        )
    if model.relation.fingerprint:
        raise SchemaError(
            "models are compared over all combinations of sensitive values: got a schema with "
            "another relation; compare with a schema without it, and audit with this one"
        )
    if not model.relation.finite:
        raise SchemaError(
            "a person has infinitely many counterparts: got a real-valued sensitive column; "
            "expected finitely many; declare it as integer, or add a step"
        )
