"""Comparison: FETA's answers next to those of the user's own model, on the same people (S7).

A model that was read wrongly shows here, whatever the mistake was: both sides start from the user's own
table.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from feta.arrays import Flags, Matrix, Vector
from feta.errors import NetworkError
from feta.model import Model
from feta.readers.runtime import Runtime, SourceAnswers
from feta.rule import Tolerance
from feta.scorer.network.agreement import squashed
from feta.scorer.network.error_bounds import Bounded
from feta.scorer.network.evaluation import Rows
from feta.space.attribute import Value
from feta.wider_limits import groups

if TYPE_CHECKING:
    import pandas as pd

# How far outputs may differ beyond the bound on the source's rounding, relative to 1 + their size:
# computing a probability, and comparing it, rounds too.
CLOSE = 1e-9
CLOSE_FLOAT32 = 1e-5


@dataclass(frozen=True, slots=True)
class Comparison:
    """How many rows were compared, how many decisions differ, and how many beyond rounding."""

    runtime: str  # the function of the user's model
    rows: int = 0
    different: int = 0
    surprising: int = 0  # decisions or outputs that differ by more than rounding explains
    gap: float | None = None  # the largest difference between outputs
    first: str = ""  # the first surprising row, in words
    on_table: bool = True  # whether the rows are the user's own, or drawn from the schema

    def __add__(self, other: "Comparison") -> "Comparison":
        gaps = [one for one in (self.gap, other.gap) if one is not None]
        return replace(
            self,
            rows=self.rows + other.rows,
            different=self.different + other.different,
            surprising=self.surprising + other.surprising,
            gap=max(gaps, default=None),
            first=self.first or other.first,
        )

    def check(self) -> None:
        """Raise where the model itself decides otherwise."""
        if self.surprising:
            raise NetworkError(self.contradiction())

    def contradiction(self) -> str:
        """Say that the model itself decides otherwise than FETA does, and what to look at."""
        where = "of the table" if self.on_table else "drawn from the schema"
        return f"{self.runtime} differs from FETA's reading of the model for {self.surprising:,} of {self.rows:,} people {where}, beyond rounding: {self.first}; check the values and types of the schema's columns, [table], center, scale and threshold against the program that runs the model"

    def sentence(self) -> str:
        """State what was compared."""
        rows = "1 row" if self.rows == 1 else f"{self.rows:,} rows"
        what = f"{rows} {'of the table' if self.on_table else 'drawn from the schema'} compared with {self.runtime}: "
        gap = "" if self.gap is None else f"; outputs differ by {self.gap:.2g} at most"
        if not self.different:
            return f"{what}the same decisions{gap}."
        return f"{what}{self.different:,} differ, all within the model's own rounding{gap}."


def compare(
    model: Model,
    runtime: Runtime,
    people: Matrix,
    frame: "pd.DataFrame | None" = None,
    *,
    rows: "list[int] | None" = None,
) -> Comparison:
    """Evaluate people with the user's own model and compare: as the frame holds them, if it is given.

    `rows` are their row numbers in the user's table, counted from 0.
    """
    if not len(people):
        return Comparison(runtime.name, on_table=frame is not None)
    by_frame = frame is not None and runtime.columns is not None
    theirs = (
        runtime.evaluate_frame(frame)
        if by_frame and frame is not None
        else runtime.evaluate(people)
    )
    far, different, certain = (np.zeros(len(people), dtype=bool) for _ in range(3))
    gaps = []
    for wider, here in groups(model, people):  # people outside the limits have a model of their own
        part = theirs.part(here)
        scores = wider.runtime_scores(Rows(wider.exact, people[here]))
        far[here], gap = _outputs_apart(wider, part, scores)
        different[here], certain[here] = _decisions_apart(wider, part, scores, people[here])
        gaps += [] if gap is None else [gap]
    surprising = far | certain
    first = ""
    if surprising.any():
        index = int(np.argmax(surprising))
        row = index if rows is None else rows[index]
        first = f"row {row + 1} {_in_words(model, theirs, people[index], index)}"
    return Comparison(
        runtime.name,
        len(people),
        int((different | far).sum()),
        int(surprising.sum()),
        max(gaps, default=None),
        first,
        on_table=frame is not None,
    )


def _outputs_apart(
    model: Model, theirs: SourceAnswers, scores: Bounded
) -> tuple[Flags, float | None]:
    """Find outputs that differ by more than rounding explains; NaN differs from everything."""
    if theirs.outputs is None:
        return np.zeros(len(scores.values), dtype=bool), None
    ours = squashed(scores.values, theirs.squash)
    off = np.abs(ours - theirs.outputs)
    close = CLOSE if model.network.source == "float64" else CLOSE_FLOAT32
    # No squashing function moves by more than its scores do.
    errors = scores.errors.max(axis=1, keepdims=True)
    within = (off <= errors + close * (1 + np.abs(ours))).all(axis=1)
    return np.asarray(~within & np.isfinite(errors[:, 0])), float(off.max(initial=0.0))


def _decisions_apart(
    model: Model, theirs: SourceAnswers, scores: Bounded, people: Matrix
) -> tuple[Flags, Flags]:
    """Find decisions that differ, and those that the source's rounding cannot explain."""
    if isinstance(model.rule, Tolerance):
        far = ~(np.abs(scores.values[:, 0] - theirs.answers) <= scores.errors[:, 0])
        return np.asarray(far), np.asarray(far)
    batch = model.resolve(Rows(model.exact, people), model.rule)
    different = batch.decisions != theirs.answers.astype(batch.decisions.dtype)
    return np.asarray(different), np.asarray(different & batch.runtime_safe)


def _in_words(model: Model, theirs: SourceAnswers, person: Vector, index: int) -> str:
    """Describe one person, and both answers."""
    who = ", ".join(f"{name} {_shown(value)}" for name, value in _decoded(model, person))
    scores = Rows(model.exact, person[None, :]).scores(model.network.arithmetic).values
    if isinstance(model.rule, Tolerance):
        their_score, our_score = float(theirs.answers[index]), float(scores[0, 0])
        return f"({who}): the model's score is {their_score:.6g}, FETA's {our_score:.6g}"
    ours = model.resolve(Rows(model.exact, person[None, :]), model.rule).decisions[0]
    names = [model.describe(int(one)) for one in (theirs.answers[index], ours)]
    if names[0] != names[1] or theirs.outputs is None:
        return f"({who}): the model decides {names[0]!r}, FETA {names[1]!r}"
    output = squashed(scores, theirs.squash)[0]
    what = "probability" if theirs.squash else "score"
    worst = int(np.argmax(np.abs(output - theirs.outputs[index])))
    both = (float(theirs.outputs[index, worst]), float(output[worst]))
    digits = ".6g" if f"{both[0]:.6g}" != f"{both[1]:.6g}" else ".17g"
    return f"({who}): the model's {what} is {both[0]:{digits}}, FETA's {both[1]:{digits}}"


def _decoded(model: Model, person: Vector) -> list[tuple[str, Value]]:
    return [
        (one.name, one.decode(person[model.space.columns_of(one)]))
        for one in model.space.attributes
    ]


def _shown(value: Value) -> str:
    return "missing" if value is None else repr(value)
