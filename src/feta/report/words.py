"""The results of an audit in sentences, for every kind of rule.

Names and values in them are untrusted input, and made harmless here.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from feta.auditing.report_data import ReportData, ReportSource
from feta.auditing.summary import AuditSummary
from feta.auditing.top_pairs import PairView
from feta.io.sanitize import plain, visible
from feta.model import Model
from feta.rule.words import RuleWords
from feta.scorer.protocol import has_scores
from feta.space.attribute import Value


def words_for(model: Model, unit: str) -> RuleWords:
    """Return the words for the results of a model's rule; classes and units in them are plain."""
    words = model.rule.words(unit=plain(unit), log_odds=model.scorer.link == "logit")
    return replace(words, margin=plain(words.margin))


@dataclass(frozen=True, slots=True)
class Headline:
    """The answer in one sentence; `strong` starts with the verdict."""

    verdict: Literal["unfair", "fair", "undecided"]
    strong: str
    rest: str

    def __str__(self) -> str:
        return self.strong + self.rest


def early_end(report: ReportData) -> str:
    """State why the results are partial; empty if they are complete."""
    if report.stopped:
        return f"Stopped, these are partial results: {plain(report.stopped)}."
    return "Interrupted: these are partial results." if report.partial else ""


def headline(summary: AuditSummary, words: RuleWords, *, partial: bool) -> Headline:
    """Answer the question; the answer is "fair" only if everybody is proved fair."""
    unfair, people = summary.statuses["unfair"], summary.people
    if unfair:
        least = "at least " if summary.statuses["undecided"] or partial else ""
        strong = f"Unfair: {least}{unfair:,} of {people:,} people"
        verb = "has" if unfair == 1 else "have"
        rest = f" ({summary.ce_rate:.1%}) {verb} {words.counterexample}."
        return Headline("unfair", strong, rest)
    if summary.everyone_fair and not partial:
        who = "the 1 person" if people == 1 else f"each of the {people:,} people"
        gets = "gets" if summary.provenance == "counted" else "provably gets"
        strong = f"Fair: {who} {gets} {words.same_outcome}"
        counted = " (counted)" if summary.provenance == "counted" else ""
        names = either(summary.attributes)
        whatever = f", whatever their {names}"
        if summary.combined:
            whatever = (
                f", for every {summary.adjective} combination of {names.replace(' or ', ' and ')}"
            )
        return Headline("fair", strong, f"{whatever}{counted}.")
    return Headline("undecided", "Undecided: ", _explain_undecided(summary, partial=partial))


def _explain_undecided(summary: AuditSummary, *, partial: bool) -> str:
    """State how many people are proved fair, and why the others are not."""
    counts = summary.statuses
    implausible = "people have implausible values and another decision than all plausible ones"
    groups = {
        "people have nobody to compare with": summary.nobody,
        implausible: summary.own_differ,
        "people are undecided": summary.open,
        "rows could not be read": counts["not audited"],
    }
    reasons = [f"{count:,} {what}" for what, count in groups.items() if count]
    reasons += ["the remaining rows were not audited yet"] if partial else []
    nobody = "" if summary.people else "nobody was audited; "
    how = "counted as fair" if summary.provenance == "counted" else "proved fair"
    proved = f"{nobody}{counts['fair']:,} people are {how}"
    return "; ".join([proved, *reasons]) + ", and no counterexample was found."


def either(names: Sequence[str]) -> str:
    """Join names with commas and "or"."""
    *rest, last = [plain(name) for name in names]
    return f"{', '.join(rest)} or {last}" if rest else last


def never_read(model: Model) -> tuple[str, ...]:
    """Return the names of the sensitive attributes that the model does not read."""
    return tuple(
        attribute.name
        for attribute in model.space.sensitive
        if not model.scorer.reads(attribute, model.space)
    )


def caveats(model: Model) -> Iterator[str]:
    """State the limits of what the answers prove."""
    yield from map(plain, model.relation.sentences)
    names = never_read(model)
    if names:
        several = len(names) > 1
        which = f"column{'s' if several else ''} {either(names).replace(' or ', ' and ')}"
        them = "them" if several else "it"
        yield (
            f"The model does not read the sensitive {which}: no decision can depend on {them} "
            f"directly. Other columns may still be proxies for {them} (feta doctor --data)."
        )
    if model.scorer.provenance == "counted":
        yield counted_words(model)
    if model.scorer.provenance == "sampled":
        yield (
            "Sampled, not proved: the code of a preprocessing step is unknown. For many sampled "
            "people its result was the sum of one term per column; verdicts hold only if this is "
            "true for everybody."
        )


def counted_words(model: Model) -> str:
    """State what the verdicts about a counted model mean."""
    name = plain(getattr(model.scorer, "name", "the model's own predict"))
    gaps = "" if has_scores(model.scorer) else " It returns labels only, so there are no gaps."
    return (
        f"Counted: fair means that {name} evaluated every counterpart of the person, repeatedly, "
        "in other batches and another order, with equal answers. This states what the model "
        f"decided during the audit; nothing is proved about its code.{gaps}"
    )


# Stated if FETA could not run the source model.
NOT_COMPARED = (
    "Not compared with a source: for this kind of file, or in this installation, there is no "
    "program that runs the model."
)


def compared(source: ReportSource) -> str:
    """State on how many rows FETA's model was compared with the user's model."""
    return NOT_COMPARED if source.compared is None else source.compared.sentence()


def outcome_class_words(pairs: Sequence[tuple[str, str]]) -> str:
    """State which class of the model each outcome is; empty if they have the same names."""
    if not pairs:
        return ""
    parts = [f"{plain(outcome)!r} is {plain(label)!r}" for outcome, label in pairs]
    return f"In the model's own classes, {', '.join(parts[:-1])} and {parts[-1]}."


def source_notes(notes: Iterable[str]) -> list[str]:
    """Return the notes about reading the model as sentences."""
    return [f"Note: {note}." for note in notes]


def unlisted_words(name: str, count: int) -> str:
    """State how many people have a text that the schema does not list."""
    who = "1 person has" if count == 1 else f"{count:,} people have"
    return (
        f"{who} a text in column {plain(name)} that the schema does not list: the schema has "
        "other = true, so the model treats it as unknown"
    )


def notes(summary: AuditSummary, runtime: str) -> Iterator[str]:
    """State who has no answer, and whose answer depends on rounding."""
    for outside, count in summary.outside.items():
        yield f"{plain(outside.words(count, summary.provenance))}."
    for name, count in summary.unlisted.items():
        yield f"{unlisted_words(name, count)}."
    yield from _plausible_words(summary)
    undecided, not_audited = summary.open, summary.statuses["not audited"]
    if undecided:
        who = "person is" if undecided == 1 else "people are"
        remedy = "raise --seconds, or narrow the sensitive domains"
        if summary.provenance == "counted":
            remedy = "verdicts.csv (--out) states the reasons"
        yield f"{undecided:,} {who} undecided: {remedy}."
    if not_audited:
        yield (
            f"{not_audited:,} rows could not be read and were not audited; verdicts.csv (--out) "
            "states the reasons."
        )
    if summary.runtime_sensitive:
        yield (
            f"Runtime-sensitive: {summary.runtime_sensitive:,} (verdicts.csv names them); rounding "
            "in the model's own arithmetic could change these answers."
        )
    if summary.not_replayed:
        yield (
            f"{summary.not_replayed:,} pairs do not replay in {runtime or 'the model itself'}, "
            "where rounding removes the difference; they are marked as runtime-sensitive."
        )
    elif runtime and summary.statuses["unfair"]:
        yield f"Every pair was replayed in {runtime}, with the same result."


def _plausible_words(summary: AuditSummary) -> Iterator[str]:
    """State who cannot be compared, and whose own values the relation does not admit."""
    if summary.mean_combinations is None:
        return
    which = summary.adjective
    if summary.nobody:
        yield (
            f"Nobody to compare with: {summary.nobody:,} of {summary.people:,} people; at most one "
            f"combination of the sensitive values is {which} for their other columns. They are not "
            "counted as fair."
        )
    if summary.implausible:
        yield (
            f"Own values not {which}: {summary.implausible:,} of {summary.people:,} people. The "
            f"{which} people with the same other columns are compared instead. The decision of "
            f"{summary.own_differ:,} of them differs from the one that all of these get; they are "
            "undecided."
        )
    yield (
        f"A person has {summary.mean_combinations:.1f} {which} combinations of the sensitive "
        "values on average."
    )


def figures(summary: AuditSummary, words: RuleWords) -> Iterator[str]:
    """State the rates, the gaps, and the cost of fair decisions."""
    yield from _decision_figures(summary)
    yield from _violation_figures(summary, words)
    if summary.decided:
        yield f"{words.flip[0]} {summary.flip_rate:.1%} {words.flip[1]}"
    yield from error_figures(summary, words)


def _decision_figures(summary: AuditSummary) -> Iterator[str]:
    if not summary.decisions:
        return
    both = summary.decisions + summary.fair_decisions
    current, fair = (
        ", ".join(
            f"{plain(name)} {counts[name] / summary.decided:.1%}" for name, _ in both.most_common()
        )
        for counts in (summary.decisions, summary.fair_decisions)
    )
    yield f"The model's decisions: {current}; fair decisions: {fair}."


def _violation_figures(summary: AuditSummary, words: RuleWords) -> Iterator[str]:
    if summary.statuses["unfair"]:
        parts = ", ".join(f"{plain(name)} {summary.alone[name]:,}" for name in summary.attributes)
        yield (
            f"One attribute alone is enough for: {parts}; only several together: "
            f"{summary.jointly:,}."
        )
        yield violation_sentence(summary, words)
    if summary.mean_span is not None and summary.max_span is not None:
        mean, largest = map(words.amount, (summary.mean_span, summary.max_span))
        yield f"The scores of a person's counterparts span {mean} on average, {largest} at most."


def violation_sentence(summary: AuditSummary, words: RuleWords) -> str:
    """State mean and maximum of the gaps; a model that returns labels only has none."""
    if not summary.has_gaps:
        return "The model returns labels only, so the counterexamples have no gap."
    mean, largest = map(words.amount, (summary.mean_violation, summary.violation_max))
    return f"{words.violation} {mean} on average, {largest} at most."


def error_figures(summary: AuditSummary, words: RuleWords) -> Iterator[str]:
    """State how often decisions, or how closely scores, agree with the labels."""
    people = f"({summary.labeled:,} labeled people)"
    if summary.accuracy is not None and summary.fair_accuracy is not None:
        yield (
            f"Accuracy: {summary.accuracy:.1%} now, {summary.fair_accuracy:.1%} with fair "
            f"decisions {people}."
        )
    if summary.mean_absolute_error is not None and summary.fair_mean_absolute_error is not None:
        errors = (summary.mean_absolute_error, summary.fair_mean_absolute_error)
        current, fair = map(words.amount, errors)
        yield f"Mean absolute error: {current} now, {fair} with fair scores {people}."


def cell(value: Value) -> str:
    """Format a value of a person; blanks that matter are visible."""
    if value is None:
        return "missing"
    return f"{value:.10g}" if isinstance(value, float) else visible(value)


def changes(view: PairView, *, arrow: Literal["→", "->"]) -> str:
    """List the attributes in which the two people of a pair differ, with both values."""
    before, after = view.before, view.after
    return ", ".join(
        f"{name} {cell(before[name])} {arrow} {cell(after[name])}" for name in view.changed
    )


def duration(seconds: float) -> str:
    """Format a time in its largest unit: one decimal below 10, none above."""
    for unit, size in (("h", 3600.0), ("min", 60.0), ("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.{int(seconds < 10 * size)}f} {unit}"
    return "0 µs"
