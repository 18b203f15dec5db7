"""The gate: the result of a comparison of two audits, one word for CI and a sentence for people."""

from dataclasses import dataclass
from enum import StrEnum

from feta.io.sanitize import plain
from feta.report.diff import Diff


class GateResult(StrEnum):
    """The result of a comparison; the values are part of the JSON format."""

    NOT_WORSE = "not worse"
    WORSE = "worse"
    LESS_SETTLED = "less settled"  # answers were lost
    NOT_COMPARABLE = "not comparable"
    NOT_MATCHED = "not matched"


@dataclass(frozen=True, slots=True)
class Gate:
    """The changes that are allowed; by default, nobody may be newly unfair.

    By default, the question must be the same as well.
    """

    allow_new: int = 0  # maximum number of newly unfair people
    rate_only: bool = False  # compare only the share of unfair people, not who they are
    other_question: bool = False  # columns, domains, sensitive attributes or decisions may differ

    def outcome(self, diff: Diff) -> GateResult:
        """Return the result; answers to different questions are neither better nor worse."""
        if not (diff.same_question or self.other_question):
            return GateResult.NOT_COMPARABLE
        if diff.contradicted or (diff.unmatched and not self.rate_only):
            return GateResult.NOT_MATCHED
        if self.worse(diff):
            return GateResult.WORSE
        return GateResult.LESS_SETTLED if self._answers_lost(diff) else GateResult.NOT_WORSE

    def _answers_lost(self, diff: Diff) -> bool:
        if not self.rate_only:
            return diff.more_undecided or diff.answers_lost
        nobody = 0 in diff.counts("people")  # a table without people has no rate
        names = ("undecided", "not_audited")
        return diff.partial or nobody or any(_share_rose(diff, name) for name in names)

    def worse(self, diff: Diff) -> bool:
        """Return whether more people are unfair than this gate allows."""
        if self.rate_only:
            return _share_rose(diff, "unfair")
        before, after = diff.counts("unfair")
        return len(diff.newly_unfair) > self.allow_new or after - before > self.allow_new


def _share_rose(diff: Diff, name: str) -> bool:
    """Compare two shares of the audited people exactly, without a division."""
    (before, after), (people_before, people_after) = diff.counts(name), diff.counts("people")
    return after * people_before > before * people_after


def conclusion(diff: Diff, gate: Gate) -> str:
    """State the result of the gate, with its figures, and what to do."""
    result = gate.outcome(diff)
    return f"{result.capitalize()}: {_explanation(result, diff, gate)}"


def _explanation(result: GateResult, diff: Diff, gate: Gate) -> str:
    match result:
        case GateResult.NOT_COMPARABLE:
            return (
                "the two audits answer different questions. Audit both with one schema, or accept "
                "the difference with --allow-other-question."
            )
        case GateResult.NOT_MATCHED:
            remedy = "Audit both with the same --id, or compare the rates alone with --rate-only"
            if diff.contradicted:
                remedy = "Audit again, and do not change the files of an audit"
            reasons = plain("; ".join(diff.unmatched))
            return (
                "people cannot be matched one to one, so somebody may be newly unfair: "
                f"{reasons}. {remedy}."
            )
        case GateResult.LESS_SETTLED:
            return (
                'answers were lost, so "not worse" would claim too much. Audit again with more '
                "--seconds, or resume the audit that was interrupted."
            )
        case GateResult.WORSE:
            return f"{_figures(diff, gate)}."
        case GateResult.NOT_WORSE:
            scope = ", and no answer was lost"
            if gate.rate_only:
                scope = "; only the rates were compared, not who is unfair"
            return f"{_figures(diff, gate)}{scope}."


def _figures(diff: Diff, gate: Gate) -> str:
    before, after = diff.counts("unfair")
    change = f"{before:,} → {after:,}"
    if gate.rate_only:
        rose = "rose" if gate.worse(diff) else "did not rise"
        shares = [
            unfair / max(1, people)
            for unfair, people in zip((before, after), diff.counts("people"), strict=True)
        ]
        return f"the CE rate {rose}: {shares[0]:.1%} → {shares[1]:.1%}"
    new = len(diff.newly_unfair)
    allowed = f" ({gate.allow_new:,} are allowed)" if gate.allow_new else ""
    if not new and after <= before:
        return "nobody is newly unfair"
    if not new:
        return f"more people are unfair{allowed}: {change}"
    newly = f"{new:,} {'person is' if new == 1 else 'people are'} newly unfair{allowed}"
    if after == before:
        return f"{newly}, the same number in total: {after:,}"
    return f"{newly}, {'but fewer' if after < before else 'and more'} in total: {change}"
