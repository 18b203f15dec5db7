"""Differences between the questions that two audits answer, in words."""

import re
from collections.abc import Iterator
from typing import Any

from feta.io.sanitize import plain
from feta.report.audited import Audited

# Keys of audit.json's "model" that identify the model. All other keys define the question, so an
# unknown key of a later version counts as part of the question.
IDENTITY = (
    "file",
    "file_sha256",
    "fingerprint",
    "network",
    "counterparts",
    "sensitive_never_read",
    "notes",
)

# The strongest kind of answer first.
PROVENANCES = ("proved", "counted", "sampled")

DECISION = ("rule", "outcomes", "tolerance")

# A range of numbers; versions differ in how they write an integer, not in how they write a number.
RANGE = re.compile(
    r"an? (?P<kind>[a-z ]+) from (?P<low>[^\s,]+) to (?P<high>[^\s,]+)(?P<missing> or missing)?"
)


def question_changes(old: Audited, new: Audited) -> Iterator[str]:
    """State each difference; a later question that is only stronger is no difference."""
    yield from _space_changes(old.model, new.model)
    yield from _decision_changes(old.model, new.model)
    yield from _provenance_changes(old.model, new.model)
    yield from _limit_changes(old.content, new.content)


def _space_changes(old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    before, after = old["sensitive"], new["sensitive"]
    same = {name: _domain(before[name]) == _domain(after[name]) for name in before if name in after}
    for name in dict.fromkeys([*before, *after]):
        if name not in after:
            yield f"{name} is no longer sensitive"
        elif name not in before:
            yield f"{name} is now sensitive"
        elif not same[name]:
            yield f"the domain of {name} was {before[name]} and is {after[name]}"
    unchanged = before.keys() == after.keys() and all(same.values())
    if old["space"] != new["space"] and unchanged:
        yield "the columns, their domains or which are sensitive"


def _domain(text: str) -> tuple[str | bool, ...]:
    """Parse the domain of an attribute, so that its wording does not matter."""
    numbers = RANGE.fullmatch(text)
    if numbers is None:
        return (text,)
    is_real = numbers["kind"] == "number"
    return is_real, numbers["low"], numbers["high"], numbers["missing"] is not None


def _decision_changes(old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    if any(old.get(key) != new.get(key) for key in DECISION):
        yield "the decisions or the tolerance"
    before, after = (side.get("rule_options") for side in (old, new))
    for name in dict.fromkeys([*(before or {}), *(after or {})]):
        yield from _change(f"the rule's {name}", before, after, name)
    if (before is None) != (after is None):
        yield "one audit does not state threshold and favors (an earlier version)"
    if old.get("tolerance_compares") != new.get("tolerance_compares"):  # 0.1.0 had no such key
        yield (
            "what a tolerance compares: the span of all counterparts' scores, or the distance to "
            "the person's own"
        )
    known = {*IDENTITY, *DECISION, "sensitive", "space", "reading", "rule_options"}
    known.add("tolerance_compares")
    for name in dict.fromkeys([*old, *new]):
        if name not in known:
            yield from _change(name, old, new, name)


def _change(
    words: str, old: dict[str, Any] | None, new: dict[str, Any] | None, key: str
) -> Iterator[str]:
    """Compare a value; a value that only one side states is a difference."""
    if old is None or new is None:
        return
    before, after = (_text(side, key) for side in (old, new))
    if before != after:
        yield f"{words} was {before} and is {after}"


def _text(side: dict[str, Any], key: str) -> str:
    return plain(repr(side[key])) if key in side else "not stated"


def _provenance_changes(old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    """Compare the provenance: weaker answers must not replace stronger ones."""
    before, after = (_text(side, "reading").strip("'") for side in (old, new))
    weaker = after not in PROVENANCES or (
        before in PROVENANCES and PROVENANCES.index(after) > PROVENANCES.index(before)
    )
    if before != after and weaker:
        yield f"answers were {before} and are {after}"


def _limit_changes(old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    """Compare the time limits per person: with a shorter one, more people may be undecided."""
    before, after = (side.get("seconds_per_person") for side in (old, new))
    shorter = after is not None and (before is None or after < before)
    if shorter and new["summary"]["undecided"]:
        earlier = "no limit" if before is None else f"{before} s"
        yield f"the time limit per person was {earlier} and is {after} s"
