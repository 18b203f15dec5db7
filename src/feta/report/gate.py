"""Gate: what a diff of two audits comes to, in one word for CI and in a sentence for people."""

from dataclasses import dataclass
from enum import StrEnum

from feta.io.sanitize import plain
from feta.report.diff import Diff


class GateResult(StrEnum):
    """How a later audit stands to an earlier one."""

    NOT_WORSE = "not worse"
    WORSE = "worse"
    LESS_SETTLED = "less settled"
    NOT_COMPARABLE = "not comparable"
    NOT_MATCHED = "not matched"


@dataclass(frozen=True, slots=True)
class Gate:
    """What may change; by default nobody may newly have a counterexample, and the question stays."""

    allow_new: int = 0  # people who may newly have one
    rate_only: bool = False  # only the share of people who have one counts, not who they are
    other_question: bool = (
        False  # other columns, domains, sensitive ones or decisions may be asked about
    )

    def outcome(self, found: Diff) -> GateResult:
        """Judge: what was not the same question is never called better or worse."""
        if not (found.same_question or self.other_question):
            return GateResult.NOT_COMPARABLE
        if found.contradicted or (found.unmatched and not self.rate_only):
            return GateResult.NOT_MATCHED
        if self.worse(found):
            return GateResult.WORSE
        return GateResult.LESS_SETTLED if self._less_settled(found) else GateResult.NOT_WORSE

    def _less_settled(self, found: Diff) -> bool:
        if not self.rate_only:
            return found.unsettled or found.answers_lost
        nobody = 0 in found.counts("people")  # who has no rate
        open_rows = ("undecided", "not_audited")
        return found.partial or nobody or any(_share_rose(found, name) for name in open_rows)

    def worse(self, found: Diff) -> bool:
        """Say whether more people are treated apart than this gate lets through."""
        if self.rate_only:
            return _share_rose(found, "unfair")
        before, after = found.counts("unfair")
        return len(found.newly_unfair) > self.allow_new or after - before > self.allow_new


def _share_rose(found: Diff, name: str) -> bool:
    """Compare two shares of the people asked about, without a division."""
    (before, after), (asked_before, asked_after) = found.counts(name), found.counts("people")
    return after * asked_before > before * asked_after


def conclusion(found: Diff, gate: Gate) -> str:
    """Say how it ended, and by which figures."""
    match gate.outcome(found):
        case GateResult.NOT_COMPARABLE:
            return "Not comparable: the two audits asked different questions. Audit both with one schema, or accept it with --allow-other-question."
        case GateResult.NOT_MATCHED:
            remedy = "Audit both with the same --id, or compare the rates alone with --rate-only"
            if found.contradicted:
                remedy = "Audit again: the files of an audit must stay as they were written"
            reasons = plain("; ".join(found.unmatched))
            return f"Not matched: people cannot be matched one to one, so somebody may be newly unfair: {reasons}. {remedy}."
        case GateResult.LESS_SETTLED:
            return 'Less settled: answers are missing that were there, so "not worse" would say too much. Audit again with more --seconds, or resume the audit that was interrupted.'
        case GateResult.WORSE:
            return f"Worse: {_figures(found, gate)}."
        case GateResult.NOT_WORSE:
            scope = ", and no answer is missing"
            if gate.rate_only:
                scope = "; only the rates were compared, not who is unfair"
            return f"Not worse: {_figures(found, gate)}{scope}."


def _figures(found: Diff, gate: Gate) -> str:
    before, after = found.counts("unfair")
    change = f"{before:,} → {after:,}"
    if gate.rate_only:
        told = f"the CE rate {'rose' if gate.worse(found) else 'did not rise'}"
        shares = [
            one / max(1, all_)
            for one, all_ in zip((before, after), found.counts("people"), strict=True)
        ]
        return f"{told}: {shares[0]:.1%} → {shares[1]:.1%}"
    new = len(found.newly_unfair)
    allowed = f" ({gate.allow_new:,} are allowed)" if gate.allow_new else ""
    if not new and after <= before:
        return "nobody new has a counterexample"
    if not new:
        return f"more people have a counterexample{allowed}: {change}"
    told = f"{new:,} {'person is' if new == 1 else 'people are'} newly unfair"
    if after == before:
        return f"{told}{allowed}, as many in all as before: {after:,}"
    return f"{told}{allowed}, {'although fewer' if after < before else 'and more'} in all: {change}"
