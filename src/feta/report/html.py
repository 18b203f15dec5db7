"""A report as one HTML page: no script, no external address, light and dark colors."""

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, partial
from importlib.resources import files
from typing import TYPE_CHECKING

from feta.auditing.report_data import ReportData
from feta.auditing.section import ReportSection, shown_sections
from feta.io.bad_rows import listed_kinds
from feta.model import Model
from feta.report.first_screen import facts
from feta.report.group_rates import MIN_PEOPLE, GroupLine, group_lines, with_rates
from feta.report.metric_frame import Disparity, disparities, installed
from feta.report.picture import svg
from feta.report.probabilities import likely_outcome, pair_probabilities
from feta.report.proxy_words import proxy_lines
from feta.report.template import environment, short
from feta.report.words import (
    caveats,
    cell,
    duration,
    early_end,
    either,
    headline,
    notes,
    outcome_class_words,
    source_notes,
    violation_sentence,
    words_for,
)
from feta.rule.words import RuleWords

if TYPE_CHECKING:
    from jinja2 import Template

# Maximum rows of the tables; the files next to the report have all of them.
MAX_INTERSECTIONS = 15
MAX_UNANSWERED = 20
MAX_COLUMNS = 200

# Characters of a name or value.
MAX_CHARACTERS = 120

# Characters of a line of the first screen: of names that were shortened before, and sentences.
MAX_LINE = 2000

# Cards that change the same attributes in the same direction; more would say the same.
CARDS_OF_A_KIND = 2


@dataclass(frozen=True, slots=True)
class Card:
    """A pair side by side: first the differences, then what both have in common."""

    title: str
    changed: tuple[tuple[str, str, str], ...]
    shared: tuple[tuple[str, str], ...]
    decisions: tuple[str, str]
    margins: tuple[str, str]
    probabilities: tuple[str, str] | None
    runtime: str
    replayed: bool | None
    reasons: tuple[str, ...]  # which other columns moved, and why


def html(report: ReportData, sections: tuple[ReportSection, ...] = ()) -> str:
    """Render a report, with more sections at its end; the template escapes every name and value."""
    model, summary = report.model, report.summary
    words = words_for(model, report.source.unit)
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    picture, picture_of = report.picture or (None, None)
    return _template().render(
        report=report,
        summary=summary,
        model=model,
        words=words,
        answer=headline(summary, words, partial=report.partial),
        facts=list(facts(report, words, made=now)),
        question=question(report),
        rule=rule_words(model, report.source.unit),
        outcome_classes=outcome_class_words(report.source.outcome_classes),
        shared=[a for a in model.space.attributes if not model.space.is_sensitive(a)],
        max_columns=MAX_COLUMNS,
        cards=_cards(report, words),
        likely=likely_outcome(model, words),
        violation=violation_sentence(summary, words),
        by_attribute={name: group_lines(report, name) for name in report.groups.by_attribute},
        intersections=_intersections(report),
        picture=picture,
        picture_of=picture_of,
        svg=svg,
        notes=[
            *notes(summary, report.source.runtime),
            *source_notes(report.source.notes),
        ],
        caveats=list(caveats(model)),
        proxies=[] if report.proxies is None else list(proxy_lines(report.proxies)),
        early_end=early_end(report),
        cards_of_a_kind=CARDS_OF_A_KIND,
        sections=shown_sections(report, sections),
        favorable=model.outcomes[1] if model.rule.two_sided else None,
        max_unanswered=MAX_UNANSWERED,
        bad_kinds=listed_kinds(report.bad_rows),
        min_people=MIN_PEOPLE,
        fairlearn=installed(),
        disparities=_disparities(report),
        now=now,
        style=files("feta.report").joinpath("report.css").read_text(encoding="utf-8"),
    )


@cache
def _template() -> "Template":
    jinja = environment("feta.report")
    jinja.filters |= {
        "percent": _percent,
        "short": partial(short, most=MAX_CHARACTERS),
        "line": partial(short, most=MAX_LINE),
        "long": partial(short, most=5 * MAX_CHARACTERS),
        "duration": duration,
    }
    return jinja.get_template("report.html.j2")


def _percent(share: float) -> str:
    return f"{share:.1%}"


def question(report: ReportData) -> str:
    """Return the question that the audit answers about each person."""
    names = either(report.summary.attributes).replace(" or ", " and ")
    words = words_for(report.model, report.source.unit)
    relation = report.model.relation
    other = (
        "every other column"
        if relation.complete or relation.enclosing is not None
        else "every column that does not move along, as stated above"
    )
    return (
        f"Does this person have {words.counterexample}? A counterpart is equal in {other}, and has "
        f"{relation.adjective or 'any'} values of {names}."
    )


def rule_words(model: Model, unit: str) -> str:
    """Describe how scores become decisions."""
    return model.rule.explanation(model.outcomes, unit=unit, log_odds=model.scorer.link == "logit")


def _disparities(report: ReportData) -> dict[str, list[Disparity]]:
    """Return fairlearn's metrics by attribute, if the decision has two sides."""
    if not report.model.rule.two_sided:
        return {}
    results = {
        name: disparities([group for _, group in report.groups.present(name)], MIN_PEOPLE)
        for name in report.groups.by_attribute
    }
    return {name: rows for name, rows in results.items() if rows}


def _cards(report: ReportData, words: RuleWords) -> list[Card]:
    """Return pairs side by side, without those that say the same as others."""
    model, shown = report.model, Counter[tuple[object, ...]]()
    probable = likely_outcome(model, words) is not None
    cards = []
    for view in report.pairs:
        before, after, changed = view.before, view.after, set(view.changed)
        values = tuple((key, cell(before[key]), cell(after[key])) for key in view.changed)
        kind, same = (view.changed, view.pair.decisions), (values, view.pair.decisions)
        if shown[same] or shown[kind] == CARDS_OF_A_KIND:
            continue
        shown.update([kind, same])
        margins = view.pair.margins(model.rule).tolist()
        decisions = [model.outcomes[index] for index in view.pair.decisions] or ["", ""]
        name = f" ({view.name})" if view.name else ""
        cards.append(
            Card(
                f"Row {view.finding.row + 1}{name}",
                values,
                tuple((key, cell(before[key])) for key in before if key not in changed),
                (decisions[0], decisions[1]),
                (words.amount(margins[0]), words.amount(margins[1])),
                pair_probabilities(model, view.pair) if probable else None,
                view.finding.runtime,
                view.finding.replayed,
                model.relation.reasons(view.pair.person, view.pair.counterpart),
            )
        )
    return cards


def _intersections(report: ReportData) -> list[GroupLine]:
    """Return the largest intersections; with one attribute there are none."""
    if len(report.groups.bands) < 2:  # noqa: PLR2004 - an intersection needs two attributes
        return []
    named = [(" · ".join(names), group) for names, group in report.groups.by_intersection.items()]
    largest = sorted(named, key=lambda item: (-item[1].people, item[0]))[:MAX_INTERSECTIONS]
    return with_rates(report, largest)
