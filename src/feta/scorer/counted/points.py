"""People and counterparts as points of a counted model."""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from feta.arrays import Counts, Matrix, Vector
from feta.dyadic import Dyadic
from feta.errors import UnreliableAnswer
from feta.rounding import DIFFERENCE, Arithmetic
from feta.scorer.counted.answers import Answers
from feta.scorer.counted.evaluator import CHUNK
from feta.scorer.exact_scores import ExactScores
from feta.scorer.protocol import Doubt, Enclosure
from feta.scorer.restricted_rows import CounterpartRows, RestrictedRows
from feta.space.lattice import Lattice

if TYPE_CHECKING:
    from feta.scorer.counted.counted import Counted

# Larger than any sum of float64 numbers: an answer within this radius decides nothing.
UNBOUNDED = 2**1100


@dataclass(frozen=True, eq=False)
class CountedRows:
    """People, one per row; the model evaluates them anew for every question."""

    scorer: "Counted"
    rows: Matrix

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def answers(self) -> Answers:
        """The answers of the model."""
        return self.scorer.evaluator.people(self.rows)

    def scores(self, arithmetic: Arithmetic, chosen: Counts | None = None) -> Enclosure:
        """Return the answers as scores; the model's own arithmetic computed them."""
        del arithmetic
        answers = self.answers if chosen is None else self.answers.rows(chosen)
        return enclosure(self.scorer, answers)

    def exact_scores(self, chosen: Counts) -> ExactScores:
        """Return the answers as exact numbers, or intervals where they are in doubt."""
        return exact_scores(self.scorer, self.answers.rows(chosen))


@dataclass(frozen=True, eq=False)
class CountedRestricted(RestrictedRows):
    """A counted model on people's counterparts."""

    scorer: "Counted"

    def counterparts(self, people: Matrix, assignment_ids: Counts) -> "CountedCounterparts":
        """Return the counterparts of each person with these assignments."""
        return CountedCounterparts(self, people, assignment_ids)

    @cached_property
    def domain(self) -> str:
        """A sha256 of what determines the counterparts of a key: the axes and the relation."""
        axes = [(axis.columns, repr(axis.attribute)) for axis in self.relation.axes]
        text = f"{self.relation.fingerprint}{axes!r}"
        return hashlib.sha256(text.encode()).hexdigest()

    def prepare(self, person: Vector) -> None:
        """Evaluate all counterparts of a person, if they are one chunk.

        The person is one of them, and is not evaluated once more then.
        """
        if self.relation.finite and self.relation.size <= CHUNK and self.relation.complete:
            self.chunk(person, self.keys(person[None, :])[0], 0)

    def keys(self, people: Matrix) -> list[bytes]:
        """Return what determines each person's counterparts: the key, or else the whole row."""
        if self.relation.has_key:
            return self.relation.keys(people)
        return [row.tobytes() for row in people]

    def doubt(self, person: Vector) -> Doubt | None:
        """Return the latest doubt about a counterpart of a person; different answers first."""
        remembered = list(self.scorer.evaluator.doubts)
        if self.relation.has_key:
            key = self.keys(person[None, :])[0]
            related = [doubt for doubt in remembered if self.keys(doubt.row[None, :])[0] == key]
        else:
            related = [doubt for doubt in remembered if self.relation.related(person, doubt.row)]
        different = [doubt for doubt in related if doubt.kind == "nondeterministic"]
        chosen = different or related
        return chosen[-1] if chosen else None

    def chunk(self, person: Vector, key: bytes, index: int) -> tuple[Counts, Answers]:
        """Return the ids of one chunk of a person's counterparts, and the answers to them."""
        listed = None if self.relation.complete else self.relation.assignment_ids(person)
        start, stop = index * CHUNK, min((index + 1) * CHUNK, self.relation.size)
        ids = np.arange(start, stop)
        if listed is not None:
            ids = listed[(listed >= start) & (listed < stop)]
        chunk_key = (self.domain, key, index)
        return ids, self.scorer.evaluator.chunk(chunk_key, lambda: self._rows(person, ids))

    def _rows(self, person: Vector, ids: Counts) -> Matrix:
        if self.relation.enclosing is None:
            return self.relation.moved(person, ids)
        people = np.repeat(person[None, :], len(ids), axis=0)
        return Lattice(self.relation.axes).moved(people, ids)


@dataclass(frozen=True, eq=False)
class CountedCounterparts(CounterpartRows):
    """Counterparts of people, from the chunks that contain them."""

    restricted: CountedRestricted

    @cached_property
    def answers(self) -> Answers:
        """The answers of the model, person by person."""
        keys = self.restricted.keys(self.people)
        parts = [self._of(person, key) for person, key in zip(self.people, keys, strict=True)]
        n_answers = self.restricted.scorer.evaluator.calls.ask.n_answers
        values = [np.zeros((0, n_answers)), *(part.values for part in parts)]
        radii = [np.zeros(0), *(part.radii for part in parts)]
        return Answers(np.concatenate(values), np.concatenate(radii))

    def _of(self, person: Vector, key: bytes) -> Answers:
        """Return the answers to one person's counterparts."""
        ids = self.assignment_ids
        n_answers = self.restricted.scorer.evaluator.calls.ask.n_answers
        values, radii = np.zeros((len(ids), n_answers)), np.zeros(len(ids))
        for index in np.unique(ids // CHUNK).tolist():
            here = np.flatnonzero(ids // CHUNK == index)
            known, answers = self.restricted.chunk(person, key, index)
            places = np.searchsorted(known, ids[here])
            assert (known[places] == ids[here]).all()  # all of them are counterparts
            values[here], radii[here] = answers.values[places], answers.radii[places]
        return Answers(values, radii)

    def scores(self, arithmetic: Arithmetic, chosen: Counts | None = None) -> Enclosure:
        """Return the answers as scores; the model's own arithmetic computed them."""
        del arithmetic
        answers = self.answers if chosen is None else self.answers.rows(chosen)
        return enclosure(self.restricted.scorer, answers)

    def exact_scores(self, chosen: Counts) -> ExactScores:
        """Return the answers as exact numbers, or intervals where they are in doubt."""
        return exact_scores(self.restricted.scorer, self.answers.rows(chosen))


def enclosure(scorer: "Counted", answers: Answers) -> Enclosure:
    """Return directions · answers + offsets with error bounds; infinite where nothing is valid."""
    sizes = np.abs(scorer.directions).T
    values = answers.values @ scorer.directions.T + scorer.offsets
    errors = np.zeros_like(values)
    if not scorer.plain:
        errors += DIFFERENCE * (np.abs(answers.values) @ sizes + np.abs(scorer.offsets))
    doubtful = answers.radii > 0
    errors[doubtful] += answers.radii[doubtful, None] * sizes.sum(axis=0) * (1 + DIFFERENCE)
    return Enclosure(values, errors)


def exact_scores(scorer: "Counted", answers: Answers) -> ExactScores:
    """Return directions · answers + offsets without rounding."""
    lost = np.isinf(answers.radii)
    if scorer.exact_only and lost.any():
        raise UnreliableAnswer(
            "the model's scores cannot be used: got a row without a reliable answer; expected "
            f"equal answers whenever a row is evaluated; {_latest_doubt(scorer)}"
        )
    centers = Dyadic.of(answers.values)
    exact = ExactScores(centers, _radii(scorer, answers, lost))
    return exact if scorer.plain else exact.combined(scorer.directions, Dyadic.of(scorer.offsets))


def _radii(scorer: "Counted", answers: Answers, lost: np.ndarray) -> Dyadic | None:
    # Labels have no gaps. Radii of 0 decide everything except which pair is the worst.
    if scorer.has_scores and not (answers.radii > 0).any():
        return None
    radii = Dyadic.of(np.where(lost, 0.0, answers.radii))
    numerators = radii.numerators
    for row in np.flatnonzero(lost):
        numerators[row] = UNBOUNDED << -radii.exponent
    shape = answers.values.shape
    return Dyadic(np.broadcast_to(numerators[:, None], shape).copy(), radii.exponent)


def _latest_doubt(scorer: "Counted") -> str:
    doubts = scorer.evaluator.doubts
    return doubts[-1].message if doubts else "no row is known"
