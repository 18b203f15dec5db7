"""Fair decisions about the chunks of a table, and what the table shows besides them."""

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Self

import numpy as np

from feta.arrays import Matrix
from feta.auditing.outcome import fair_outcomes
from feta.engine.protocol import UNLIMITED, Budget
from feta.errors import DomainError, Undecided
from feta.io.bad_rows import BadRows
from feta.io.chunk import Chunk
from feta.model import Model
from feta.predict.fair_predictor import FairPredictor
from feta.rule import Outcome
from feta.space.limits import Outside

UNDECIDED, NOT_READ = "undecided", "not read"

# Unread rows whose problem is printed in full.
SHOWN_PROBLEMS = 5


@dataclass
class Remarks:
    """What a table shows besides decisions: unread rows, people outside limits, unlisted texts."""

    bad_rows: BadRows
    first_problems: list[str] = field(default_factory=list)
    outside: Counter[Outside] = field(default_factory=Counter)
    unlisted: Counter[str] = field(default_factory=Counter)

    @classmethod
    def of(cls, model: Model) -> Self:
        """Return no remarks."""
        ignore = not model.relation.reads_sensitive
        return cls(BadRows(model.space, ignore_sensitive=ignore, open_limits=True))

    def add_problem(self, row: Chunk, error: DomainError, *, before: int) -> None:
        """Count a row that could not be read."""
        self.bad_rows.add(row, error, before=before)
        if len(self.first_problems) < SHOWN_PROBLEMS:
            self.first_problems.append(str(error))

    def merged(self, other: Self) -> Self:
        """Return the remarks about both parts of a table."""
        return type(self)(
            self.bad_rows.merged(other.bad_rows),
            (self.first_problems + other.first_problems)[:SHOWN_PROBLEMS],
            self.outside + other.outside,
            self.unlisted + other.unlisted,
        )


@dataclass
class TableDecisions:
    """The fair decisions about a table, chunk by chunk."""

    predictor: FairPredictor
    id_column: str | None = None
    skip_bad_rows: bool = False
    seconds: float | None = None  # the time limit per person
    before: int = 0  # rows of the table that are in files before this one
    remarks: Remarks = field(init=False)
    incomplete: bool = False  # whether somebody is undecided, or a row was not read

    def __post_init__(self) -> None:
        self.remarks = Remarks.of(self.predictor.model)

    def of_chunk(self, chunk: Chunk) -> list[str | float]:
        """Return the decision about each row, by name; regression: the score."""
        model = self.predictor.model
        people, good = self._encode(chunk)
        for limit, flags in model.space.open_limits.outside(people):
            self.remarks.outside[limit] += int(flags.sum())
        self.remarks.unlisted.update(model.space.unlisted(people))
        decisions: list[str | float] = [NOT_READ] * len(chunk)
        for index, outcome in zip(good, self._outcomes(people), strict=True):
            decisions[index] = UNDECIDED if outcome is None else model.describe(outcome)
            self.incomplete |= outcome is None
        self.incomplete |= len(good) < len(chunk)
        return decisions

    def _outcomes(self, people: Matrix) -> list[Outcome | None]:
        """Decide people together, the fastest way; if somebody remains undecided, by counts."""
        if self.seconds is None and len(people):
            try:
                outcomes: list[Outcome | None] = self.predictor.decide(people).tolist()
            except Undecided:
                pass
            else:
                return outcomes
        # The option limits the time per person; the predictor's budget is for all people together.
        budget = UNLIMITED if self.seconds is None else Budget(seconds=self.seconds * len(people))
        return fair_outcomes(replace(self.predictor, budget=budget), people)

    def _encode(self, chunk: Chunk) -> tuple[Matrix, list[int]]:
        """Encode the people of a chunk; with `skip_bad_rows`, omit and count invalid rows."""
        space, admit = self.predictor.model.space, self.predictor.admit
        encode = partial(
            Chunk.encode,
            space=space,
            ignore_sensitive=not self.predictor.model.relation.reads_sensitive,
            admit=admit,
            id_column=self.id_column,
        )
        if not self.skip_bad_rows:
            return encode(chunk), list(range(len(chunk)))
        parts: list[Matrix] = [np.zeros((0, space.width))]
        good: list[int] = []
        for rows, result in chunk.attempts(encode):
            if isinstance(result, DomainError):
                self.remarks.add_problem(chunk.take(rows), result, before=self.before)
            else:
                parts.append(result)
                good += rows
        return np.concatenate(parts), good
