"""The outcome of one combination: FETA's results compared with the truth."""

import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from threadpoolctl import threadpool_limits

from campaigns.tables.answers import Answers, Crash, Refusal, run_steps
from campaigns.tables.case import NUMBERS, Case, LeftOut, make_case
from campaigns.tables.combinations import Combination
from campaigns.tables.contents import COLUMN, Content, is_missing
from campaigns.tables.oracle import Truth, truth_of

Kind = Literal["left out", "answered", "undecided", "refused", "crashed"]

SEPARATE_EVERY = 150  # one of so many combinations runs the commands in separate processes

# Words that name a missing cell, and verbs that start a remedy.
MISSING = ("missing", "empty", "nan", "none", "<na>", "null")
VALUE = re.compile(r"\b(got|may be|holds?|value) ['\"\d]")
REMEDIES = (
    "add|change|choose|convert|correct|declare|drop|encode|fill|fit|give|leave|let|list|name|pass|put"
    "|read|refit|remove|rename|replace|save|set|spell|strip|take|train|use|widen|write"
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a combination; counts are of rows."""

    name: str
    kind: Kind
    message: str = ""  # the reason, the refusal or the crash
    step: str = ""  # that refused
    vague: tuple[str, ...] = ()  # what the refusal does not name
    problems: tuple[str, ...] = ()  # of the schema
    rows: int = 0
    near: int = 0
    unfair: int = 0  # in truth
    wrong_fair: int = 0
    wrong_unfair: int = 0
    wrong_model: int = 0
    wrong_decisions: tuple[tuple[str, int], ...] = ()  # by source of the fair decisions

    @property
    def wrong(self) -> bool:
        """Whether any verdict, decision or schema is wrong."""
        rows = self.wrong_fair + self.wrong_unfair + self.wrong_model
        return bool(rows or self.problems) or any(n for _, n in self.wrong_decisions)


def outcome_of(combination: Combination, *, seed: int, keep: Path | None = None) -> Outcome:
    """Run one combination from end to end."""
    if reason := combination.left_out:
        return Outcome(combination.name, "left out", reason)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        try:
            with threadpool_limits(1):
                outcome = _compare(combination, folder, seed)
        finally:
            if keep is not None:
                target = keep / combination.name.replace("/", "_")
                shutil.copytree(folder, target, dirs_exist_ok=True)
    return outcome


def _compare(combination: Combination, folder: Path, seed: int) -> Outcome:
    name = combination.name
    try:
        case = make_case(combination, folder, seed=seed)
    except LeftOut as reason:
        return Outcome(name, "left out", str(reason))
    try:
        answers = run_steps(case, folder, separate_process=combination.number % SEPARATE_EVERY == 0)
    except Crash as error:
        return Outcome(name, "crashed", str(error))
    if isinstance(answers, Refusal):
        vague = _unnamed(answers.message, combination.content)
        return Outcome(name, "refused", answers.message, answers.step, vague)
    return _count_wrong(case, answers, truth_of(case, answers.domain))


def _unnamed(message: str, content: Content) -> tuple[str, ...]:
    """Return what a refusal does not name."""
    lower = message.lower()
    values = [
        str(v).strip().lower() for v in content.values if not is_missing(v) and str(v).strip()
    ]
    spelled = [*values, *(text.strip().lower() for text in content.spellings if text.strip())]
    named_parts = {
        "column": re.search(rf"\b({'|'.join((COLUMN, *NUMBERS))})\b", lower) is not None,
        "value": any(text in lower for text in (*spelled, *MISSING))
        or VALUE.search(lower) is not None,
        "remedy": re.search(rf"(;|, or|, and) ({REMEDIES})\b", lower) is not None,
    }
    return tuple(what for what, named in named_parts.items() if not named)


def _count_wrong(case: Case, answers: Answers, truth: Truth) -> Outcome:
    name = case.combination.name
    lengths = {len(answers.verdicts), *(len(rows) for rows in answers.fair.values())}
    if lengths != {len(case.frame)}:
        return Outcome(name, "crashed", f"{len(case.frame)} rows have answers of {lengths} rows")
    rows = [row for row in range(len(case.frame)) if not truth.near[row]]
    verdicts = [(answers.verdicts[row], bool(truth.unfair[row])) for row in rows]
    fair = {
        source: sum(decisions[row] not in (truth.fair[row], "undecided") for row in rows)
        for source, decisions in answers.fair.items()
    }
    decisions = [
        *answers.verdicts,
        *(decision for rows in answers.fair.values() for decision in rows),
    ]
    return Outcome(
        name,
        "undecided" if {"undecided", "not audited"} & set(decisions) else "answered",
        problems=truth.problems,
        rows=len(case.frame),
        near=int(truth.near.sum()),
        unfair=int(truth.unfair.sum()),
        wrong_fair=sum(verdict == "fair" and unfair for verdict, unfair in verdicts),
        wrong_unfair=sum(verdict == "unfair" and not unfair for verdict, unfair in verdicts),
        wrong_model=sum(
            answers.model_decisions[row] not in (truth.model_decisions[row], "") for row in rows
        ),
        wrong_decisions=tuple(fair.items()),
    )
