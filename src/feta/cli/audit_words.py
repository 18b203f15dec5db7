"""Audit words: what an audit comes to, as a person reads it on the terminal."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from feta.audit.clearest import Shown
from feta.audit.lead import leads
from feta.audit.summary import Summary
from feta.cli.open_model import Opened
from feta.cli.plain import plain
from feta.model import Model
from feta.network.unread import unread
from feta.rule import Argmax, OneVsRest, Threshold, Tolerance
from feta.verdict.counterexample import Counterexample


@dataclass(frozen=True, slots=True)
class Words:
    """How a rule's answers are spoken of; the unit may hold anything, so it is never a format."""

    apart: str = "decided the other way"  # what an unfair person's counterpart is
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
                apart=f"whose score is more than {most} away",
                alike=f"scored alike, to within {most}",
                flip=(
                    "Fair scores (feta predict) would move",
                    f"of the scores by more than {most}.",
                ),
            )
        case Argmax():
            return Words(
                apart="given another class", lead="lead of the other class", violation=LEADS
            )
        case OneVsRest(chosen=chosen):
            return Words(lead=f"lead of {plain(chosen)}", violation=LEADS)
        case Threshold():
            return Words()


def show(
    opened: Opened,
    summary: Summary,
    pairs: Sequence[Shown],
    *,
    partial: bool,
    out: Path | None,
) -> None:
    """Print what was found."""
    model = opened.model
    words = words_for(model, opened.unit)
    console = Console()
    console.print()
    console.print(_headline(summary, words, partial=partial))
    if summary.statuses["unfair"]:
        console.print(_pair_table(model, words, pairs))
    for line in [*_notes(summary, words, opened.runtime), *caveats(model)]:
        console.print(Text(line))
    for doubt in summary.doubts:
        console.print(Text(f"Doubtful: {plain(doubt)}", style="bold yellow"))
    if out is not None:
        console.print(Text(f"Written to {plain(out)}: pairs.csv, verdicts.csv, audit.json"))
    console.print()


def _headline(summary: Summary, words: Words, *, partial: bool) -> Text:
    unfair, people = summary.statuses["unfair"], summary.people
    text = Text()
    if partial:
        text.append("Interrupted: these are partial results.\n", style="bold yellow")
    if unfair:
        least = "at least " if summary.statuses["undecided"] else ""
        text.append(f"Yes: {least}{unfair:,} of {people:,} people", style="bold red")
        text.append(f" have a counterpart {words.apart} (CE rate {summary.ce_rate:.1%}).")
    elif summary.everyone_fair and not partial:
        text.append(f"No: all {people:,} people are proved to be {words.alike}", style="bold green")
        text.append(f", whatever their {_either(summary.attributes)}.")
    else:
        text.append("Not settled: ", style="bold yellow")
        text.append(
            f"{summary.statuses['fair']:,} people are proved to be {words.alike}, the others are not."
        )
    return text


def _either(names: Sequence[str]) -> str:
    *rest, last = [plain(name) for name in names]
    return f"{', '.join(rest)} or {last}" if rest else last


def _pair_table(model: Model, words: Words, pairs: Sequence[Shown]) -> Table:
    table = Table(box=SIMPLE_HEAD, title="The clearest pairs", title_justify="left")
    decides = bool(model.outcomes)
    headings = ("row", "the same file, but for", *(["decision"] if decides else []), words.lead)
    for heading in headings:
        table.add_column(Text(heading))
    for shown in pairs:
        name = f" ({plain(shown.name)})" if shown.name else ""
        cells = [Text(f"{shown.finding.row + 1}{name}"), _changes(model, shown.pair)]
        if decides:
            first, second = (plain(model.outcomes[one]) for one in shown.pair.decisions)
            cells.append(Text(f"{first} → {second}"))
        digits = "+.4g" if decides else words.digits
        before, after = (f"{one:{digits}}" for one in leads(model, shown.pair))
        table.add_row(*cells, Text(f"{before} → {after}"))
    return table


def _changes(model: Model, pair: Counterexample) -> Text:
    before, after = model.space.decode(pair.person), model.space.decode(pair.counterpart)
    changes = [
        f"{plain(one)} {plain(before[one])} → {plain(after[one])}"
        for one in before
        if before[one] != after[one]
    ]
    return Text("\n".join(changes), style="bold")


def never_read(model: Model) -> tuple[str, ...]:
    """Name the sensitive attributes that the model never looks at."""
    sensitive = {attribute.name for attribute in model.space.sensitive}
    return tuple(name for name in unread(model.network.first, model.space) if name in sensitive)


def caveats(model: Model) -> Iterator[str]:
    """Say what the answers rest on, besides proof."""
    names = never_read(model)
    if names:
        which = f"column{'s' if len(names) > 1 else ''} {_either(names).replace(' or ', ' and ')}"
        yield f"The model never reads the sensitive {which}: no decision can hang on {'them' if len(names) > 1 else 'it'} directly; other columns may still stand for {'them' if len(names) > 1 else 'it'} (feta doctor --data)."
    if model.network.reading == "sampled":
        yield "Sampled, not proved: a preprocessing step of unknown code was tried out on many people, and its columns' shares add up there; verdicts hold as far as that tells."


def _notes(summary: Summary, words: Words, runtime: str) -> Iterator[str]:
    yield from _figures(summary, words)
    if summary.statuses["undecided"]:
        yield f"{summary.statuses['undecided']:,} people are undecided: raise --seconds, or narrow the sensitive domains."
    if summary.statuses["not audited"]:
        yield f"{summary.statuses['not audited']:,} rows could not be read and were not audited; verdicts.csv (--out) says why."
    if summary.runtime_sensitive:
        yield f"Runtime-sensitive: {summary.runtime_sensitive:,} (verdicts.csv names them); the model's own rounding could tip these answers."
    if summary.not_replayed:
        yield f"{summary.not_replayed:,} pairs do not replay in {runtime or 'the model itself'}, whose rounding decides them alike; they are labelled runtime-sensitive."
    elif runtime and summary.statuses["unfair"]:
        yield f"Every pair was replayed in {runtime}, with the same two decisions."


def _figures(summary: Summary, words: Words) -> Iterator[str]:
    if summary.decisions:
        shares = ", ".join(
            f"{plain(name)} {count / summary.decided:.1%}"
            for name, count in summary.decisions.most_common()
        )
        yield f"The model's own decisions: {shares}."
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
