"""Words: an audit's answers in sentences, whatever the rule; only names and values are strangers'."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from feta.auditing.summary import AuditSummary
from feta.io.sanitize import plain, visible
from feta.model import Model
from feta.rule import Argmax, OneVsRest, Threshold, Tolerance
from feta.space.attribute import Value

if TYPE_CHECKING:
    from feta.report.report import ReportSource


@dataclass(frozen=True, slots=True)
class Words:
    """How a rule's answers are spoken of; the unit may hold anything, so it is never a format."""

    apart: str = "a counterpart decided the other way"  # what an unfair person has
    who: str = "somebody"  # what a counterpart is, in the question
    same: str = "the same file, but for"  # what the two of a pair have
    both: tuple[str, str] = ("person", "counterpart")  # what the two of a pair are called
    alike: str = "decided alike"  # what all counterparts of a fair person are
    lead: str = "score"  # what the numbers of a pair are
    violation: str = "Scores of the farthest pairs differ by"
    flip: tuple[str, str] = (
        "Fair decisions (feta predict) would change",
        "of the decisions.",
    )  # around the share of people
    digits: str = ".3g"
    unit: str = ""

    def amount(self, value: float) -> str:
        """Write a distance between scores."""
        return f"{value:{self.digits}}" + (f" {self.unit}" if self.unit else "")


LEADS = "The other class leads at the farthest counterparts by"


def words_for(model: Model, unit: str) -> Words:
    """Choose the words for a model's rule."""
    match model.rule:
        case Tolerance(epsilon=epsilon):
            words = Words(digits=",.6g", unit=plain(unit))
            most = words.amount(epsilon)
            return replace(
                words,
                apart=f"two counterparts whose scores are more than {most} apart",
                who="people",
                same="two people with this file otherwise",
                both=("lower score", "higher score"),
                alike=f"scored alike, to within {most}",
                flip=(
                    "Fair scores (feta predict) would move",
                    f"of the scores by more than {most}.",
                ),
            )
        case Argmax():
            return Words(
                apart="a counterpart given another class",
                lead="lead of the other class",
                violation=LEADS,
            )
        case OneVsRest(chosen=chosen):
            return Words(lead=f"lead of {plain(chosen)}", violation=LEADS)
        case Threshold() if model.network.sigmoid:
            odds = "Scores (log-odds) of the farthest pairs differ by"
            return Words(lead="score (log-odds)", violation=odds)
        case Threshold():
            return Words()


@dataclass(frozen=True, slots=True)
class Headline:
    """The answer in a sentence: its first words are the verdict."""

    verdict: Literal["unfair", "fair", "open"]
    strong: str
    rest: str

    def __str__(self) -> str:
        return self.strong + self.rest


def headline(summary: AuditSummary, words: Words, *, partial: bool) -> Headline:
    """Answer the question; while anything is open, the answer is never "fair"."""
    unfair, people = summary.statuses["unfair"], summary.people
    if unfair:
        least = "at least " if summary.statuses["undecided"] or partial else ""
        strong = f"Unfair: {least}{unfair:,} of {people:,} people"
        rest = f" {'has' if unfair == 1 else 'have'} {words.apart} (CE rate {summary.ce_rate:.1%})."
        return Headline("unfair", strong, rest)
    if summary.everyone_fair and not partial:
        strong = f"Fair: all {people:,} people are proved to be {words.alike}"
        return Headline("fair", strong, f", whatever their {either(summary.attributes)}.")
    return Headline("open", "Not settled: ", _what_is_open(summary, words, partial=partial))


def _what_is_open(summary: AuditSummary, words: Words, *, partial: bool) -> str:
    """Say who is proved, and why the others are not; nobody was found to be treated apart."""
    counts = summary.statuses
    told = {
        "people are undecided": counts["undecided"],
        "rows could not be read": counts["not audited"],
    }
    reasons = [f"{count:,} {what}" for what, count in told.items() if count]
    reasons += ["the rest was not asked about yet"] if partial else []
    nobody = "" if summary.people else "nobody was asked about; "
    proved = f"{nobody}{counts['fair']:,} people are proved to be {words.alike}"
    return "; ".join([proved, *reasons]) + ", and no counterexample was found."


def either(names: Sequence[str]) -> str:
    """List names with an "or"."""
    *rest, last = [plain(name) for name in names]
    return f"{', '.join(rest)} or {last}" if rest else last


def never_read(model: Model) -> tuple[str, ...]:
    """Name the sensitive attributes that the model never looks at."""
    return tuple(
        attribute.name
        for attribute in model.space.sensitive
        if not model.network.reads(attribute, model.space)
    )


def caveats(model: Model) -> Iterator[str]:
    """Say what the answers rest on, besides proof."""
    names = never_read(model)
    if names:
        which = f"column{'s' if len(names) > 1 else ''} {either(names).replace(' or ', ' and ')}"
        yield f"The model never reads the sensitive {which}: no decision can hang on {'them' if len(names) > 1 else 'it'} directly; other columns may still stand for {'them' if len(names) > 1 else 'it'} (feta doctor --data)."
    if model.network.provenance == "sampled":
        yield "Sampled, not proved: a preprocessing step of unknown code was tried out on many people, and its columns' shares add up there; verdicts hold as far as that tells."


# Stated where FETA could not run the model that it read.
NOT_COMPARED = "Not compared with a source: this kind of file, or this installation, has no program that runs the model."


def compared(source: "ReportSource") -> str:
    """State on how many rows the user's own model was compared with FETA's reading of it."""
    return NOT_COMPARED if source.compared is None else source.compared.sentence()


def source_notes(told: Iterable[str]) -> list[str]:
    """Write what was noted when the model was read, as sentences."""
    return [f"Note: {note}." for note in told]


def unlisted_words(name: str, count: int) -> str:
    """Count the people whose text the schema does not list."""
    who = "1 person has" if count == 1 else f"{count:,} people have"
    return f"{who} a text in column {plain(name)} that the schema does not list: other = true, and the model treats it as unknown"


def notes(summary: AuditSummary, runtime: str) -> Iterator[str]:
    """State what is open, and how the model's own arithmetic matters."""
    for one, count in summary.outside.items():
        yield f"{plain(one.words(count, summary.provenance))}."
    for name, count in summary.unlisted.items():
        yield f"{unlisted_words(name, count)}."
    if summary.statuses["undecided"]:
        left = summary.statuses["undecided"]
        yield f"{left:,} {'person is' if left == 1 else 'people are'} undecided: raise --seconds, or narrow the sensitive domains."
    if summary.statuses["not audited"]:
        yield f"{summary.statuses['not audited']:,} rows could not be read and were not audited; verdicts.csv (--out) says why."
    if summary.runtime_sensitive:
        yield f"Runtime-sensitive: {summary.runtime_sensitive:,} (verdicts.csv names them); the model's own rounding could tip these answers."
    if summary.not_replayed:
        yield f"{summary.not_replayed:,} pairs do not replay in {runtime or 'the model itself'}, whose rounding decides them alike; they are labelled runtime-sensitive."
    elif runtime and summary.statuses["unfair"]:
        yield f"Every pair was replayed in {runtime}, with the same result."


def figures(summary: AuditSummary, words: Words) -> Iterator[str]:
    """Say how often, how far, and what fair decisions would cost."""
    if summary.decisions:
        both = summary.decisions + summary.fair_decisions
        own, fair = (
            ", ".join(
                f"{plain(name)} {one[name] / summary.decided:.1%}" for name, _ in both.most_common()
            )
            for one in (summary.decisions, summary.fair_decisions)
        )
        yield f"The model's own decisions: {own}; fair ones would be: {fair}."
    if summary.statuses["unfair"]:
        parts = ", ".join(f"{plain(name)} {summary.alone[name]:,}" for name in summary.attributes)
        yield f"One attribute alone is enough for: {parts}; only several together: {summary.jointly:,}."
        mean, most = map(words.amount, (summary.mean_violation, summary.violation_max))
        yield f"{words.violation} {mean} on average, by {most} at most."
    if summary.mean_span is not None and summary.max_span is not None:
        mean, most = map(words.amount, (summary.mean_span, summary.max_span))
        yield f"The scores of a person's counterparts span {mean} on average, {most} at most."
    yield f"{words.flip[0]} {summary.flip_rate:.1%} {words.flip[1]}"
    if summary.accuracy is not None and summary.fair_accuracy is not None:
        yield f"Accuracy: {summary.accuracy:.1%} as it is, {summary.fair_accuracy:.1%} with fair decisions ({summary.labeled:,} labeled people)."
    if summary.mean_absolute_error is not None and summary.fair_mean_absolute_error is not None:
        errors = (summary.mean_absolute_error, summary.fair_mean_absolute_error)
        own, fair = map(words.amount, errors)
        yield f"Mean absolute error: {own} as it is, {fair} with fair scores ({summary.labeled:,} labeled people)."


def cell(value: Value) -> str:
    """Write a person's value; blanks that differ can be seen."""
    if value is None:
        return "missing"
    return f"{value:.10g}" if isinstance(value, float) else visible(value)


def duration(seconds: float) -> str:
    """Write a time in the largest unit that it fills, to two digits or the whole number."""
    for unit, size in (("h", 3600.0), ("min", 60.0), ("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.{int(seconds < 10 * size)}f} {unit}"
    return "0 µs"
