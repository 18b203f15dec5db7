"""The facts on the first screen of a report: what was asked, how certain, of whom, by what."""

from collections.abc import Iterator
from typing import NamedTuple

from feta.auditing.report_data import ReportData
from feta.auditing.top_pairs import PairView
from feta.io.sanitize import plain
from feta.report.probabilities import probabilities
from feta.report.words import changes, compared, either, error_figures
from feta.rule.words import RuleWords
from feta.scorer.protocol import Provenance

# Characters of a digest that are shown; the method names all of them.
SHOWN_DIGITS = 16


class Fact(NamedTuple):
    """A line of the first screen; `code` is shown as it must be typed."""

    term: str
    text: str
    code: str = ""


def facts(report: ReportData, words: RuleWords, *, made: str) -> Iterator[Fact]:
    """State the facts in the order in which readers ask for them."""
    yield Fact("Compared", _compared_people(report))
    yield Fact("Certainty", _certainty(report))
    if report.pairs:
        clearest = min(report.pairs, key=lambda view: (len(view.changed), -view.pair.gap))
        yield Fact("Example", example(report, clearest, words))
    yield Fact("Beyond the table", _beyond(report))
    yield Fact("Fair decisions", _cost(report, words))
    yield Fact("Not covered", NOT_COVERED)
    yield Fact("Model", f"{_model(report)} {compared(report.source)}")
    if report.certificate:
        yield Fact("Certificate", "Its seal; feta check re-proves it:", report.certificate)
    yield Fact(
        "Made",
        f"{made} by FETA {plain(report.versions['FETA'])}. Repeat it with:",
        _command(report),
    )


NOT_COVERED = (
    "Columns that reveal a sensitive one (proxies), different rates of groups, and what a law "
    "requires. The sections below state figures, not assessments."
)


CERTAINTY: dict[Provenance, str] = {
    "proved": (
        "Proved, rounding included: fair people have the same decision as all counterparts, and "
        "every pair was evaluated exactly."
    ),
    "counted": (
        "Counted: the model itself evaluated every counterpart, repeatedly. Nothing is proved "
        "about its code."
    ),
    "sampled": (
        "Sampled, not proved: a preprocessing step has unknown code. The verdicts hold if it "
        "treats everybody as it treated the sampled people."
    ),
}


def _compared_people(report: ReportData) -> str:
    names = either(report.summary.attributes).replace(" or ", " and ")
    if report.model.relation.complete:
        return (
            f"Each person with everybody who differs in {names} only, at any values of the domain."
        )
    relation = report.model.relation
    sentences = " ".join(plain(text) for text in relation.sentences)
    if relation.enclosing is not None:
        who = f"the {relation.adjective} people who differ in {names} only"
    else:
        who = f"people who differ in {names} and in what the relation lets differ"
    return f"Each person with {who}. {sentences}".strip()


def _certainty(report: ReportData) -> str:
    """State how answers were obtained."""
    answer = CERTAINTY[report.summary.provenance]
    undecided = report.summary.statuses["undecided"]
    if not undecided:
        return answer
    return f"{answer} Without a verdict, and never counted as fair: {undecided:,} people."


def example(report: ReportData, view: PairView, words: RuleWords) -> str:
    """Describe a pair in one sentence."""
    model, name = report.model, f" ({plain(view.name)})" if view.name else ""
    who = f"Row {view.finding.row + 1}{name}: {plain(changes(view, arrow='→'))}"
    before, after = view.pair.margins(model.rule).tolist()
    if not model.outcomes:
        scores = f"{words.amount(before)} to {words.amount(after)}"
        return f"{who}, and nothing else, moves the score from {scores}."
    first, second = (plain(model.outcomes[index]) for index in view.pair.decisions)
    chance = probabilities(model, view.pair, words)
    odds = "" if chance is None else f" ({chance})"
    return f"{who}, and nothing else, changes the decision from {first} to {second}{odds}."


def _beyond(report: ReportData) -> str:
    """State what the table says about other people."""
    interval = report.summary.unfair_interval
    if interval is None or report.partial:
        return "No statement: the audit is not complete."
    low, high = interval
    return (
        f"If the {report.summary.people:,} people are a random sample, between {low:.1%} and "
        f"{high:.1%} of all such people have a counterexample (95% interval, Wilson). feta prove "
        "asks about everybody whom the schema allows."
    )


def _cost(report: ReportData, words: RuleWords) -> str:
    """State what fair decisions would change."""
    summary = report.summary
    lines = [
        f"{words.flip[0]} {summary.flip_rate:.1%} {words.flip[1]}",
        *error_figures(summary, words),
    ]
    return " ".join(lines)


def _model(report: ReportData) -> str:
    name = plain(report.source.model_file) or "In memory"
    identity, schema = (
        digest[:SHOWN_DIGITS]
        for digest in (report.model.fingerprint, report.model.space.fingerprint)
    )
    return f"{name}, id {identity}, schema id {schema}."


def _command(report: ReportData) -> str:
    return report.source.command or "feta.audit(model, table)"
