"""Question: how the question of a later audit differs from that of an earlier one, in words."""

from collections.abc import Iterator
from typing import Any

from feta.io.sanitize import plain
from feta.report.audited import Audited

# What identifies the model that is asked about. Everything else in audit.json's "model" is the
# question, so that a field of a later version counts as one until it is listed here.
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


def question_changes(old: Audited, new: Audited) -> Iterator[str]:
    """State each difference; a later question that is only stronger is no difference."""
    yield from _space_changes(old.model, new.model)
    yield from _decision_changes(old.model, new.model)
    yield from _provenance_changes(old.model, new.model)
    yield from _limit_changes(old.content, new.content)


def _space_changes(old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    before, after = old["sensitive"], new["sensitive"]
    for name in dict.fromkeys([*before, *after]):
        if name not in after:
            yield f"{name} is no longer sensitive"
        elif name not in before:
            yield f"{name} is sensitive now"
        elif before[name] != after[name]:
            yield f"{name} may be {after[name]}, and could be {before[name]}"
    if old["space"] != new["space"] and before == after:
        yield "the columns, their domains or which are sensitive"


def _decision_changes(old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    if any(old.get(key) != new.get(key) for key in DECISION):
        yield "what is decided, or the tolerance"
    before, after = (side.get("rule_options") for side in (old, new))
    for name in dict.fromkeys([*(before or {}), *(after or {})]):
        yield from _change(f"the rule's {name}", before, after, name)
    if (before is None) != (after is None):
        yield "one audit does not state threshold and favors (an earlier version)"
    if old.get("tolerance_compares") != new.get("tolerance_compares"):  # 0.1.0 had no such key
        yield "what a tolerance compares: the span of all counterparts' scores, or the distance to the person's own"
    known = {*IDENTITY, *DECISION, "sensitive", "space", "reading", "rule_options"}
    known.add("tolerance_compares")
    for name in dict.fromkeys([*old, *new]):
        if name not in known:
            yield from _change(name, old, new, name)


def _change(
    words: str, old: dict[str, Any] | None, new: dict[str, Any] | None, key: str
) -> Iterator[str]:
    """Compare a value; one that only one side states is a difference."""
    if old is None or new is None:
        return
    before, after = (_shown(side, key) for side in (old, new))
    if before != after:
        yield f"{words} was {before} and is {after}"


def _shown(side: dict[str, Any], key: str) -> str:
    return plain(repr(side[key])) if key in side else "not stated"


def _provenance_changes(old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    """Compare how far answers are proved: weaker ones do not take the place of stronger ones."""
    before, after = (_shown(side, "reading").strip("'") for side in (old, new))
    weaker = after not in PROVENANCES or (
        before in PROVENANCES and PROVENANCES.index(after) > PROVENANCES.index(before)
    )
    if before != after and weaker:
        yield f"answers were {before} and are {after}"


def _limit_changes(old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    """Compare the time limits per person: a shorter one may leave more people undecided."""
    before, after = (side.get("seconds_per_person") for side in (old, new))
    shorter = after is not None and (before is None or after < before)
    if shorter and new["summary"]["undecided"]:
        was = "no limit" if before is None else f"{before} s"
        yield f"the time limit per person was {was} and is {after} s"
