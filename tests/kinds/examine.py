"""What happens to a kind of model, compared with brute force by the model's own predict."""

import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

import feta
from feta import Fair, FairPredictor, Model, Unfair
from feta.arrays import Array, Vector
from feta.readers.read_model import read_any
from feta.scorer.counted.options import CountingOptions
from feta.verdict.verdict import Verdict
from tests.kinds.kind import Built, Kind
from tests.kinds.people import ROWS, SPACE, TABLE, counterparts

# Fixed batches and no time limit, so that nothing depends on the speed of the machine.
OPTIONS = CountingOptions(batch=64, timeout=None)

# Predictions of regressors are computed in other orders, some of them in float32.
CLOSE = 1e-4

# Characters of a reason that are shown in full.
SHORT = 80

SAMPLED = "a step of unknown code was sampled"


@dataclass
class Examined:
    """How a kind is read, and which answers are not those of the model itself."""

    kind: Kind
    provenance: str
    reason: str  # why it is not read in a better way
    wrong: list[str] = field(default_factory=list)
    n_fair: int = 0

    @property
    def row(self) -> str:
        """The row of the table."""
        reason = self.reason.replace("|", "\\|")
        return f"| {self.kind.family} | {self.kind.name} | {self.provenance} | {reason} |"


def examine(kind: Kind, folder: Path) -> Examined:
    """Build a model, read it, and compare the answers about some people with brute force."""
    built = kind.build(folder)
    reading = read_any(built.source, SPACE, options=OPTIONS)
    model = Model(SPACE, reading.scorer, built.rule)
    provenance = reading.scorer.provenance
    reason = SAMPLED if provenance == "sampled" else _first_part(reading.obstacle, folder)
    examined = Examined(kind, provenance, reason)
    people = SPACE.encode(TABLE.iloc[list(ROWS)])
    compare = _compare_values if model.rule.tolerance is not None else _compare_decisions
    for row, person in zip(ROWS, people, strict=True):
        answers = built.answer(counterparts(row))
        verdict = feta.verify(feta.FairAt(model, person))
        wrong = compare(model, person, verdict, answers)
        if isinstance(verdict, Unfair):
            wrong += _compare_pair(model, built, verdict)
        # The exact sum may decide other than the library's rounded one; it is labeled then.
        if provenance == "counted" or verdict.runtime == "safe":
            examined.wrong += [f"row {row}: {text}" for text in wrong]
        examined.n_fair += isinstance(verdict, Fair)
    return examined


def _first_part(obstacle: str, folder: Path) -> str:
    """Return the first part of the reason, without the folder, the place and the advice."""
    text = re.sub(r" \(\S+\[\d+\]\)", "", obstacle.replace(f"{folder}/", ""))
    text = text.partition(";")[0].partition(", so no exact")[0]
    return text if len(text) <= SHORT else text.partition(": got")[0]


def _compare_decisions(model: Model, person: Vector, verdict: Verdict, answers: Array) -> list[str]:
    """Compare verdict, counts and fair decision with the decisions of the model itself."""
    counts = np.bincount(answers.astype(int), minlength=model.rule.n_classes)
    fair = int(counts.max()) == len(answers)
    tally = feta.tally(model, person[None, :]).by_class[0]
    winner = int(np.argmax(counts)) if len(counts) > 2 else int(counts[1] >= counts[0])
    decided = int(FairPredictor(model).decide(person[None, :])[0])
    wrong = [] if _agrees(verdict, fair=fair) else [f"{verdict}, expected fair: {fair}"]
    wrong += [] if (tally == counts).all() else [f"counts {tally}, expected {counts}"]
    return wrong + ([] if decided == winner else [f"decision {decided}, expected {winner}"])


def _compare_values(model: Model, person: Vector, verdict: Verdict, answers: Array) -> list[str]:
    """Compare verdict, range and median with the predictions of the model itself."""
    ordered = np.sort(answers)
    fair = ordered[-1] - ordered[0] <= model.rule.tolerance
    median = ordered[(len(ordered) - 1) // 2]
    spread = feta.spread(model, person[None, :])
    found = [spread.lowest[0], spread.highest[0], FairPredictor(model).decide(person[None, :])[0]]
    expected = [ordered[0], ordered[-1], median]
    wrong = [] if _agrees(verdict, fair=bool(fair)) else [f"{verdict}, expected fair: {fair}"]
    same = np.allclose(found, expected, rtol=CLOSE, atol=CLOSE)
    return wrong + ([] if same else [f"range and median {found}, expected {expected}"])


def _agrees(verdict: Verdict, *, fair: bool) -> bool:
    return isinstance(verdict, Fair if fair else Unfair)


def _compare_pair(model: Model, built: Built, verdict: Unfair) -> list[str]:
    """Evaluate the two people of a counterexample with the model itself."""
    pair = verdict.counterexample
    records = [model.space.decode(person) for person in (pair.person, pair.counterpart)]
    frame = pd.DataFrame(records).astype(TABLE.dtypes)
    first, second = built.answer(frame)
    tolerance = model.rule.tolerance
    differ = first != second if tolerance is None else abs(first - second) > tolerance
    shared = frame[["income", "job"]]
    related = shared.iloc[0].equals(shared.iloc[1])
    return [] if differ and related else [f"no counterexample: {records}"]
