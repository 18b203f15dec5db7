"""Explanations in words, in the style of the reasons that a lender states (Regulation B)."""

from feta.reasons.explanation import Explanation, Finding, ValueChange
from feta.space.attribute import Value
from feta.space.numeric import short_number


def sentences(explanation: Explanation) -> list[str]:
    """Return what an applicant should know, and what is proved about it."""
    wanted = explanation.wanted
    match explanation.finding:
        case Finding.FAVORABLE:
            return [f"The decision is {wanted} already."]
        case Finding.UNDECIDED:
            return ["The fair decision about this person is not known, so neither are reasons."]
        case Finding.NONE:
            return [
                f"The decision is {explanation.decision}.",
                f"No allowed change of these columns makes it {wanted}: all were decided.",
            ]
        case Finding.NOT_FOUND:
            return [
                f"The decision is {explanation.decision}.",
                f"No change that makes it {wanted} was found; not all could be decided.",
            ]
        case Finding.FOUND:
            return [f"The decision is {explanation.decision}.", *_reasons(explanation)]


def _reasons(explanation: Explanation) -> list[str]:
    changes, wanted = explanation.changes, explanation.wanted
    if len(changes) == 1:
        (one,) = changes
        what = (
            f"{_problem(one)} ({_shown(one.before)}; {_shown(one.after)} would have been {wanted})"
        )
        first = [f"The principal reason: {what}."]
    else:
        listed = [f"{_problem(one)} ({_shown(one.before)}; {_shown(one.after)})" for one in changes]
        first = [
            f"The principal reasons: {'; '.join(listed)}.",
            f"With the second value of each, the decision would have been {wanted}.",
        ]
    proof = (
        "Proved: of the allowed changes, none of fewer columns suffices, and no smaller one."
        if explanation.minimal
        else "Found, not proved minimal: a smaller change may suffice."
    )
    return [*first, proof]


def _problem(change: ValueChange) -> str:
    before, after = change.before, change.after
    numbers = isinstance(before, int | float) and isinstance(after, int | float)
    if not numbers or isinstance(before, bool):
        return f"{change.column} does not suffice"
    assert isinstance(before, int | float)
    assert isinstance(after, int | float)
    return f"{change.column} is too {'high' if after < before else 'low'}"


def _shown(value: Value) -> str:
    if isinstance(value, float):
        return short_number(value)
    return "no value" if value is None else str(value)
