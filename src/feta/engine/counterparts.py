"""Access to counterparts without holding all of them in memory: in blocks, or by ID."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from feta.arrays import Counts, Flags, Matrix, Vector
from feta.model import Model
from feta.rounding import Arithmetic
from feta.scorer.exact_scores import ExactScores
from feta.scorer.protocol import CounterpartPoints, Enclosure
from feta.space.lattice import Lattice
from feta.space.vote_weights import VoteWeights

# Counts and assignment IDs are int64; the sum of two of them must fit as well.
MAX_COUNTERPARTS = 2**62

# Numbers per array of a block: about ten arrays of 2^16 float64 fit in the cache of a core.
BLOCK_NUMBERS = 2**16


def block_size(model: Model) -> int:
    """Return the number of counterparts in a block for this model."""
    return max(1, BLOCK_NUMBERS // model.scorer.cost)


def blocks(
    model: Model, people: Matrix, weights: VoteWeights | None
) -> Iterator[tuple[CounterpartPoints, Counts]]:
    """Return blocks of counterparts, each with the votes of its assignments.

    All people must have the same assignments.
    """
    votes_of = assignments(model, people, weights)
    step = max(1, block_size(model) // len(people))
    for start in range(0, votes_of.size, step):
        assignment_ids, votes = votes_of.block(start, start + step)
        yield model.restricted.counterparts(people, assignment_ids), votes


def counterparts_of(model: Model, people: Matrix, assignment_ids: Counts) -> Matrix:
    """Return one counterpart of each person, by its assignment id."""
    relation = model.relation
    if relation.enclosing is not None:
        return Lattice(relation.axes).moved(people, assignment_ids)
    pairs = zip(people, assignment_ids.tolist(), strict=True)
    rows = [relation.counterpart(person, assignment_id) for person, assignment_id in pairs]
    return np.array(rows, dtype=np.float64).reshape(people.shape)


@dataclass(frozen=True, slots=True, eq=False)
class Assignments:
    """Assignments of counterparts and the votes of each; without a list, all below `size`."""

    size: int
    listed: Counts | None = None
    votes: Counts | None = None  # None: one vote each

    @property
    def total(self) -> int:
        """The sum of all votes."""
        return self.size if self.votes is None else int(self.votes.sum())

    def block(self, start: int, stop: int) -> tuple[Counts, Counts]:
        """Return some assignment ids and their votes."""
        stop = min(stop, self.size)
        ids = np.arange(start, stop) if self.listed is None else self.listed[start:stop]
        votes = np.ones(len(ids), np.int64) if self.votes is None else self.votes[start:stop]
        return ids, votes


def assignments(model: Model, people: Matrix, weights: VoteWeights | None) -> Assignments:
    """Return the assignments of people's counterparts; those without a vote are left out.

    Unless the relation is complete, all people must have the same assignments (`same_assignments`).
    """
    relation = model.relation
    listed = None if relation.complete else relation.assignment_ids(people[0])
    if weights is None:
        return Assignments(relation.size if listed is None else len(listed), listed)
    weights.check(model.space)
    ids, votes = weights.assignment_ids, weights.votes
    if listed is not None and relation.size != model.space.lattice.size:
        return _shared_votes(listed, relation.combinations(listed), weights)
    if listed is not None:
        kept = _among(ids, listed)
        if kept.any() or not relation.counts_all_if_none:
            ids, votes = ids[kept], votes[kept]
    return Assignments(len(ids), ids, votes)


def _shared_votes(listed: Counts, combinations: Counts, weights: VoteWeights) -> Assignments:
    """Return the assignments of which several have the votes of one combination."""
    votes_of = np.argsort(weights.assignment_ids, kind="stable")
    known = weights.assignment_ids[votes_of]
    kept = _among(combinations, known)
    places = np.searchsorted(known, combinations[kept])
    return Assignments(int(kept.sum()), listed[kept], weights.votes[votes_of[places]])


def _among(ids: Counts, listed: Counts) -> Flags:
    """Flag the ids that a list in ascending order contains."""
    if not len(listed):
        return np.zeros(len(ids), dtype=bool)
    places = np.minimum(np.searchsorted(listed, ids), len(listed) - 1)
    return np.asarray(listed[places] == ids)


def same_assignments(model: Model, people: Matrix) -> list[Counts]:
    """Divide people, by row, into groups whose counterparts have the same assignments."""
    relation = model.relation
    if relation.complete:
        return [np.arange(len(people))]
    lists = [relation.assignment_ids(person) for person in people]
    # Relations cache lists, so most equal ones are one array; the others form smaller groups.
    rows_by_list: dict[int, list[int]] = {}
    for row, ids in enumerate(lists):
        rows_by_list.setdefault(id(ids), []).append(row)
    return [np.array(rows, dtype=np.int64) for rows in rows_by_list.values()]


@dataclass(frozen=True, eq=False)
class IndexedCounterparts:
    """All counterparts of one person by assignment ID; each is created on request."""

    model: Model
    person: Vector

    def __len__(self) -> int:
        return self.model.relation.size

    def _points(self, chosen: Counts) -> CounterpartPoints:
        return self.model.restricted.counterparts(self.person[None, :], chosen)

    def scores(self, arithmetic: Arithmetic, chosen: Counts | None = None) -> Enclosure:
        """Compute scores in float64, with an error bound that also covers the given arithmetic."""
        assert chosen is not None  # all of them at once may not fit in memory
        return self._points(chosen).scores(arithmetic)

    def exact_scores(self, chosen: Counts) -> ExactScores:
        """Compute exact scores, (points, outputs)."""
        return self._points(chosen).exact_scores(np.arange(len(chosen)))
