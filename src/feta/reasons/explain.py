"""The search for the fewest and smallest changes that make a fair decision favorable.

Every candidate is decided by the predictor, so the vote of all counterparts counts, not the model's
own decision. Combinations of one column come first, then of two, and so on; each in ascending
order of their total size. So the first favorable one is minimal, and nothing else has to be
proved.
"""

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from feta.arrays import Array, Flags, Matrix, Vector
from feta.errors import DomainError, SchemaError, Undecided, unknown_choice
from feta.model import Model
from feta.predict.fair_predictor import FairPredictor
from feta.reasons.ascending import Combination, ascending
from feta.reasons.changeable import Changeable
from feta.reasons.choices import Choices, choices_of
from feta.reasons.explanation import Explanation, Finding, ValueChange
from feta.space.attribute import Derived, Integer, Levels, Real

# More principal reasons than these hardly help an applicant (commentary on Regulation B).
MAX_REASONS = 4

# Fair decisions of one search; beyond them, changes are found without a proof.
MAX_DECISIONS = 200_000

# People decided at once: few at first, because many searches end soon.
FIRST_BLOCK, LARGEST_BLOCK = 64, 4096

# Sets of columns that are searched in order.
MAX_SUBSETS = 20_000

# A block that takes longer is followed by a smaller one.
SECONDS_OF_BLOCK = 0.25

# Random combinations that are tried where the ordered search is too long.
N_RANDOM = 4096


def explain(
    predictor: FairPredictor,
    person: Vector,
    change: Sequence[str | Changeable],
    *,
    spreads: Mapping[str, float] | None = None,
    favorable: str | None = None,
    max_columns: int = MAX_REASONS,
    max_decisions: int = MAX_DECISIONS,
    seconds: float = math.inf,
) -> Explanation:
    """Find the fewest and smallest changes that make a person's fair decision favorable.

    Parameters
    ----------
    predictor
        The votes that decide.
    person
        One row encoded by `space.encode(record, sensitive=predictor.sensitive)`.
    change
        The columns that may change, such as "duration:down" or `Changeable("duration", "down")`.
        Sensitive columns and their consequences are refused.
    spreads
        The spread of numbers, by column; a change by it has the size 1. Without it, the spread is
        a quarter of the domain. A changed category has the size 1.
    favorable
        The wanted decision; needed for several classes.
    max_columns
        The most columns that may change together.
    max_decisions
        The most fair decisions of the search in order.
    seconds
        The time of the search; with a limit, the same question may end without a proof.

    Returns
    -------
    Explanation
        With `minimal=True`, no change of fewer columns suffices, and no smaller one of as many.

    Examples
    --------
    >>> import feta
    >>> space = feta.FeatureSpace(
    ...     (feta.Integer("age", 18, 90, sensitive=True), feta.Integer("income", 0, 100))
    ... )
    >>> network = feta.Network.from_layers([([[0.1, 1.0]], [-50.0])])
    >>> model = feta.Model(space, network, threshold=0.0, outcomes=("refused", "approved"))
    >>> person = space.encode({"income": 40}, sensitive="ignore")[0]
    >>> feta.explain(feta.FairPredictor(model), person, ["income:up"]).changes
    (ValueChange(column='income', before=40, after=45, size=0.2),)
    """
    model, row = predictor.model, _checked_row(predictor.model, person)
    wanted, sizes = _wanted(model, favorable), spreads or {}
    choices = tuple(
        choices_of(model, row, one, sizes.get(one.column)) for one in _checked(model, change)
    )
    search = _Search(predictor, row, choices, wanted, max_decisions, _Deadline.after(seconds))
    try:
        own = predictor.decide(search.person[None, :])
    except Undecided:
        return Explanation(Finding.UNDECIDED, "", model.outcomes[wanted])
    decision = str(model.describe(own.tolist()[0]))
    if int(own[0]) == wanted:
        return Explanation(Finding.FAVORABLE, decision, decision, minimal=True)
    finding, changes, minimal = search.run(max_columns)
    return Explanation(
        finding, decision, model.outcomes[wanted], changes, minimal=minimal, decided=search.decided
    )


def _checked_row(model: Model, person: Vector) -> Vector:
    """Return a person as an array of floats; the predictor checks its values."""
    row = np.array(person, dtype=np.float64)
    if row.shape != (model.space.width,):
        raise DomainError(
            f"invalid person: got the shape {row.shape}; expected one row of {model.space.width} "
            "columns; use space.encode(record, sensitive='ignore')[0]"
        )
    return row


def _checked(model: Model, change: Sequence[str | Changeable]) -> list[Changeable]:
    """Return what may change, with its defaults; raise for what must not."""
    read = [Changeable.read(one) if isinstance(one, str) else one for one in change]
    names = [one.column for one in read]
    if len(set(names)) != len(names) or not names:
        raise SchemaError(
            f"invalid changes: got {names}; expected one column or more, each of them once"
        )
    return [one.checked(model) for one in read]


@dataclass(frozen=True, slots=True)
class _Deadline:
    """When to end the search in order, and when to end the search as a whole."""

    middle: float
    end: float

    @classmethod
    def after(cls, seconds: float) -> "_Deadline":
        """Return the times after now."""
        now = time.monotonic()
        return cls(now + seconds / 2, now + seconds)


@dataclass(slots=True)
class _Search:
    """The choices for one person, and how many decisions are left."""

    predictor: FairPredictor
    person: Vector
    choices: tuple[Choices, ...]
    wanted: int
    max_decisions: int
    deadline: "_Deadline"
    decided: int = 0
    doubtful: bool = False  # whether some combination could not be decided
    columns: list[slice] = field(init=False)
    derived: tuple[Derived, ...] = field(init=False)

    def __post_init__(self) -> None:
        space, names = self.predictor.model.space, {one.column for one in self.choices}
        self.columns = [space.columns_of(space.attribute(one.column)) for one in self.choices]
        self.derived = tuple(
            a for a in space.attributes if isinstance(a, Derived) and a.source in names
        )

    def run(self, max_columns: int) -> tuple[Finding, tuple[ValueChange, ...], bool]:
        """Search with more and more columns; what is found in ascending order is minimal."""
        sizes = [one.sizes for one in self.choices]
        for n_columns in range(1, min(max_columns, len(sizes)) + 1):
            if math.comb(len(sizes), n_columns) > MAX_SUBSETS:
                return self._without_proof(n_columns, min(max_columns, len(sizes)))
            complete, found = self._first(ascending(sizes, n_columns))
            if found is not None:
                return Finding.FOUND, self._changes(found), not self.doubtful
            if not complete:
                return self._without_proof(n_columns, min(max_columns, len(sizes)))
        if self.doubtful:
            return Finding.NOT_FOUND, (), False
        return Finding.NONE, (), True

    def _first(self, all_of_them: Iterator[Combination]) -> tuple[bool, Combination | None]:
        """Return the first favorable combination, and whether all before it were decided."""
        left = islice(all_of_them, max(0, self.max_decisions - self.decided))
        for block, reached in self._blocks(left, self.deadline.middle):
            if reached.any():
                return True, block[int(np.flatnonzero(reached)[0])]
        return next(all_of_them, None) is None, None

    def _blocks(
        self, candidates: Iterator[Combination], until: float
    ) -> Iterator[tuple[list[Combination], Flags]]:
        """Decide candidates in blocks, until a time at which a block may still be decided."""
        size, began = FIRST_BLOCK, time.monotonic()
        while began < until and (block := list(islice(candidates, size))):
            yield block, self._reaches(block)
            now = time.monotonic()
            slow = now - began > SECONDS_OF_BLOCK
            size = max(1, size // 2) if slow else min(2 * size, LARGEST_BLOCK)
            began = now

    def _without_proof(
        self, n_columns: int, most: int
    ) -> tuple[Finding, tuple[ValueChange, ...], bool]:
        """Try random combinations of as few columns as possible, and shrink the best one."""
        generator = np.random.default_rng(0)
        usable = [index for index, one in enumerate(self.choices) if one.sizes]
        for number in range(n_columns, min(most, len(usable)) + 1):
            tried = (self._random(generator, usable, number) for _ in range(N_RANDOM))
            reached = self._reached(tried)
            if reached:
                return Finding.FOUND, self._changes(self._shrunk(min(reached))), False
        return Finding.NOT_FOUND, (), False

    def _reached(self, candidates: Iterator[Combination]) -> list[Combination]:
        """Return the favorable ones of some candidates, as far as there is time."""
        return [
            one
            for block, reached in self._blocks(candidates, self.deadline.end)
            for one, yes in zip(block, reached.tolist(), strict=True)
            if yes
        ]

    def _random(
        self, generator: np.random.Generator, usable: list[int], number: int
    ) -> Combination:
        columns = tuple(sorted(generator.choice(usable, number, replace=False).tolist()))
        picks = tuple(int(generator.integers(len(self.choices[c].sizes))) for c in columns)
        return self._sized(columns, picks)

    def _sized(self, columns: tuple[int, ...], picks: tuple[int, ...]) -> Combination:
        sizes = [self.choices[c].sizes[i] for c, i in zip(columns, picks, strict=True)]
        return float(sum(sizes)), columns, picks

    def _shrunk(self, best: Combination) -> Combination:
        """Make one change after another smaller while the decision stays favorable."""
        while True:
            smaller = (
                self._sized(best[1], (*best[2][:place], index, *best[2][place + 1 :]))
                for place in range(len(best[1]))
                for index in range(best[2][place])
            )
            better = [one for one in self._reached(smaller) if one < best]
            if not better:
                return best
            best = min(better)

    def _changes(self, found: Combination) -> tuple[ValueChange, ...]:
        """Return the changes; they are decided once more, alone."""
        assert self._reaches([found]).all()
        chosen = [(self.choices[c], i) for c, i in zip(*found[1:], strict=True)]
        return tuple(
            ValueChange(one.column, one.before, one.values[index], one.sizes[index])
            for one, index in chosen
        )

    def _reaches(self, block: Sequence[Combination]) -> Flags:
        """Return which combinations get the wanted decision; undecided ones are noted."""
        reached = np.zeros(len(block), dtype=bool)
        if not block:
            return reached
        people, valid = self._people(block)
        rows = np.flatnonzero(valid)
        self.decided += len(rows)
        while rows.size:
            try:
                answers = self.predictor.decide(people[rows])
            except Undecided as error:
                self.doubtful = True
                rows = np.delete(rows, list(error.rows))
            else:
                reached[rows] = np.asarray(answers).astype(np.int64) == self.wanted
                break
        return reached

    def _people(self, block: Sequence[Combination]) -> tuple[Matrix, Flags]:
        """Return the changed people, and which of them exist: each band must fit its source."""
        picks: Array = np.full((len(block), len(self.choices)), -1, dtype=np.int64)
        for row, (_, columns, indices) in enumerate(block):
            picks[row, list(columns)] = indices
        people = np.repeat(self.person[None, :], len(block), axis=0)
        for number, (one, columns_of_one) in enumerate(
            zip(self.choices, self.columns, strict=True)
        ):
            rows = np.flatnonzero(picks[:, number] >= 0)
            people[rows, columns_of_one] = one.codes[picks[rows, number]]
        valid = np.ones(len(block), dtype=bool)
        space = self.predictor.model.space
        for derived in self.derived:
            source = space.attribute(derived.source)
            assert isinstance(source, Integer | Levels | Real)
            bands = derived.derive(people[:, space.columns_of(source).start])
            people[:, space.columns_of(derived)] = bands
            valid &= bands.sum(axis=1) == 1.0
        return people, valid


def _wanted(model: Model, favorable: str | None) -> int:
    """Return the index of the wanted decision."""
    if model.rule.tolerance is not None:
        raise SchemaError(
            "no reasons for scores: got a regression; expected a model with decisions"
        )
    if favorable is not None:
        if favorable not in model.outcomes:
            raise SchemaError(f"unknown decision: {unknown_choice(favorable, model.outcomes)}")
        return model.outcomes.index(favorable)
    if not model.rule.two_sided:
        raise SchemaError(
            f"no favorable decision: got the decisions {list(model.outcomes)}; expected one of "
            "them; name it"
        )
    return 1
