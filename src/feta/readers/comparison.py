"""Comparison of FETA's answers with those of the user's model, on the same people.

It reveals a model that was read wrongly, whatever the mistake, since both sides start from the
user's table.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from feta.arrays import Flags, Matrix, Vector
from feta.errors import NetworkError
from feta.model import Model
from feta.readers.runtime import Runtime, SourceAnswers
from feta.scorer.network.agreement import squashed
from feta.scorer.protocol import Enclosure
from feta.space.attribute import Value
from feta.wider_limits import groups

if TYPE_CHECKING:
    import pandas as pd

# Allowed differences of outputs beyond the bound on the source's rounding error, relative to 1 +
# their size: computing and comparing a probability rounds, too.
TOLERANCE = 1e-9
TOLERANCE_FLOAT32 = 1e-5


@dataclass(frozen=True, slots=True)
class Comparison:
    """The numbers of compared rows, of different decisions, and of differences beyond rounding."""

    runtime: str  # the function of the user's model
    rows: int = 0
    different: int = 0
    surprising: int = 0  # decisions or outputs that rounding does not explain
    gap: float | None = None  # the largest difference between outputs
    first: str = ""  # a description of the first surprising row
    on_table: bool = True  # whether the rows are from the user's table, or drawn from the schema
    failed: int = 0  # rows that could not be compared, because the function failed

    def __add__(self, other: "Comparison") -> "Comparison":
        gaps = [gap for gap in (self.gap, other.gap) if gap is not None]
        return replace(
            self,
            rows=self.rows + other.rows,
            different=self.different + other.different,
            surprising=self.surprising + other.surprising,
            gap=max(gaps, default=None),
            first=self.first or other.first,
            failed=self.failed + other.failed,
        )

    def check(self) -> None:
        """Raise if the user's model differs beyond rounding."""
        if self.surprising:
            raise NetworkError(self.contradiction())

    def contradiction(self) -> str:
        """Return the message for a model that differs from FETA's, with what to check."""
        where = "of the table" if self.on_table else "drawn from the schema"
        return (
            f"{self.runtime} differs from FETA's reading of the model for {self.surprising:,} of "
            f"{self.rows:,} people {where}, beyond rounding: {self.first}; compare the values and "
            "types of the schema's columns, [table], center, scale and threshold with the program "
            "that runs the model"
        )

    def sentence(self) -> str:
        """Return one sentence that summarizes the comparison."""
        rows = "1 row" if self.rows == 1 else f"{self.rows:,} rows"
        origin = "of the table" if self.on_table else "drawn from the schema"
        what = f"{rows} {origin} compared with {self.runtime}: "
        gap = "" if self.gap is None else f"; outputs differ by {self.gap:.2g} at most"
        failed = f"; {self.failed:,} more could not be compared: it failed" if self.failed else ""
        if self.failed and not self.rows:
            return f"No row {origin} could be compared with {self.runtime}, which failed."
        if not self.different:
            return f"{what}the same decisions{gap}{failed}."
        within = "all within the model's own rounding"
        return f"{what}{self.different:,} differ, {within}{gap}{failed}."


def compare(
    model: Model,
    runtime: Runtime,
    people: Matrix,
    frame: "pd.DataFrame | None" = None,
    *,
    rows: "list[int] | None" = None,
) -> Comparison:
    """Compare FETA's answers with those of the user's model, which reads `frame` if it is given.

    `rows` are the people's row numbers in the user's table, counted from 0.
    """
    if not len(people):
        return Comparison(runtime.name, on_table=frame is not None)
    if runtime.compare is not None:
        return runtime.compare(people, frame, rows)
    by_frame = frame is not None and runtime.columns is not None
    answers = (
        runtime.evaluate_frame(frame)
        if by_frame and frame is not None
        else runtime.evaluate(people)
    )
    far, different, certain = (np.zeros(len(people), dtype=bool) for _ in range(3))
    gaps = []
    for wider, here in groups(model, people):  # people outside the limits have another model
        part = answers.part(here)
        scores = wider.runtime_scores(wider.points(people[here]))
        far[here], gap = _compare_outputs(wider, part, scores)
        different[here], certain[here] = _compare_decisions(wider, part, scores, people[here])
        gaps += [] if gap is None else [gap]
    surprising = far | certain
    first = ""
    if surprising.any():
        index = int(np.argmax(surprising))
        row = index if rows is None else rows[index]
        first = f"row {row + 1} {_describe(model, answers, people[index], index)}"
    return Comparison(
        runtime.name,
        len(people),
        int((different | far).sum()),
        int(surprising.sum()),
        max(gaps, default=None),
        first,
        on_table=frame is not None,
    )


def _compare_outputs(
    model: Model, answers: SourceAnswers, scores: Enclosure
) -> tuple[Flags, float | None]:
    """Return which outputs differ beyond rounding, and the largest difference; NaN differs."""
    if answers.outputs is None:
        return np.zeros(len(scores.values), dtype=bool), None
    outputs = squashed(scores.values, answers.squash)
    differences = np.abs(outputs - answers.outputs)
    tolerance = TOLERANCE if model.scorer.source == "float64" else TOLERANCE_FLOAT32
    # No squashing function changes by more than its scores do.
    errors = scores.errors.max(axis=1, keepdims=True)
    within = (differences <= errors + tolerance * (1 + np.abs(outputs))).all(axis=1)
    return np.asarray(~within & np.isfinite(errors[:, 0])), float(differences.max(initial=0.0))


def _compare_decisions(
    model: Model, answers: SourceAnswers, scores: Enclosure, people: Matrix
) -> tuple[Flags, Flags]:
    """Return which decisions differ, and which of them the source's rounding cannot explain."""
    if model.rule.tolerance is not None:
        far = ~(np.abs(scores.values[:, 0] - answers.answers) <= scores.errors[:, 0])
        return np.asarray(far), np.asarray(far)
    batch = model.resolve(model.points(people), model.rule)
    different = batch.decisions != answers.answers.astype(batch.decisions.dtype)
    return np.asarray(different), np.asarray(different & batch.runtime_safe)


def _describe(model: Model, answers: SourceAnswers, person: Vector, index: int) -> str:
    """Describe one person, and both answers."""
    who = ", ".join(f"{name} {_value_text(value)}" for name, value in _decoded(model, person))
    scores = model.points(person[None, :]).scores(model.scorer.arithmetic).values
    if model.rule.tolerance is not None:
        source_score, score = float(answers.answers[index]), float(scores[0, 0])
        return f"({who}): the model's score is {source_score:.6g}, FETA's {score:.6g}"
    decision = model.resolve(model.points(person[None, :]), model.rule).decisions[0]
    names = [model.describe(int(number)) for number in (answers.answers[index], decision)]
    if names[0] != names[1] or answers.outputs is None:
        return f"({who}): the model decides {names[0]!r}, FETA {names[1]!r}"
    output = squashed(scores, answers.squash)[0]
    what = "probability" if answers.squash else "score"
    worst = int(np.argmax(np.abs(output - answers.outputs[index])))
    both = (float(answers.outputs[index, worst]), float(output[worst]))
    digits = ".6g" if f"{both[0]:.6g}" != f"{both[1]:.6g}" else ".17g"
    return f"({who}): the model's {what} is {both[0]:{digits}}, FETA's {both[1]:{digits}}"


def _decoded(model: Model, person: Vector) -> list[tuple[str, Value]]:
    return [
        (attribute.name, attribute.decode(person[model.space.columns_of(attribute)]))
        for attribute in model.space.attributes
    ]


def _value_text(value: Value) -> str:
    return "missing" if value is None else repr(value)
