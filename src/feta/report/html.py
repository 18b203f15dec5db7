"""HTML: a report as one page for a desk or a court: no script, no outside address, light and dark."""

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, partial
from importlib.resources import files
from typing import TYPE_CHECKING

from feta.auditing.top_pairs import PairView
from feta.io.bad_rows import listed_kinds
from feta.model import Model
from feta.report.groups import Group
from feta.report.metric_frame import Disparity, disparities, installed
from feta.report.picture import Grid, grid, svg
from feta.report.report import Report
from feta.report.template import environment, short
from feta.report.words import (
    caveats,
    cell,
    compared,
    duration,
    either,
    headline,
    notes,
    source_notes,
    words_for,
)
from feta.rule import Argmax, OneVsRest, Rule, Threshold, Tolerance

if TYPE_CHECKING:
    from jinja2 import Template

# Rows of a table that somebody still reads; the rest is in the files beside the report.
MAX_INTERSECTIONS = 15
MAX_UNANSWERED = 20
MAX_COLUMNS = 200

# Characters of a name or value; a line may be broken after an underscore, and in a word of this size.
MAX_CHARACTERS = 120

# Groups smaller than this have no ratio: a person more or less would turn it over.
ENOUGH_FOR_A_RATIO = 10


@dataclass(frozen=True, slots=True)
class Card:
    """A pair side by side: what differs first, then what they share."""

    title: str
    changed: tuple[tuple[str, str, str], ...]
    shared: tuple[tuple[str, str], ...]
    decisions: tuple[str, str]
    margins: tuple[str, str]
    runtime: str
    replayed: bool | None


@dataclass(frozen=True, slots=True)
class GroupLine:
    """A group in a table; rates are shares of its people, ratios are to the best-off group's."""

    name: str
    group: Group
    rates: tuple[float, float] | None = None  # favorable: own, fair
    ratios: tuple[float, float] | None = None


def html(report: Report) -> str:
    """Render a report; every name and value is escaped by the template."""
    model, summary = report.model, report.summary
    words = words_for(model, report.source.unit)
    chosen = _chosen(report)
    return _template().render(
        report=report,
        summary=summary,
        model=model,
        words=words,
        answer=headline(summary, words, partial=report.partial),
        question=question(report),
        rule=rule_words(model, report.source.unit),
        shared=[one for one in model.space.attributes if not model.space.is_sensitive(one)],
        most_columns=MAX_COLUMNS,
        cards=[_card(report, shown) for shown in report.pairs],
        by_attribute={name: lines(report, name) for name in report.groups.by_attribute},
        intersections=_intersections(report),
        picture=chosen[0] if chosen else None,
        picture_of=chosen[1] if chosen else None,
        svg=svg,
        notes=[*notes(summary, report.source.runtime), *source_notes(report.source.notes)],
        caveats=list(caveats(model)),
        compared=compared(report.source),
        favorable=model.outcomes[1] if _two_sided(model.rule) else None,
        most_unanswered=MAX_UNANSWERED,
        bad_kinds=listed_kinds(report.bad_rows),
        enough=ENOUGH_FOR_A_RATIO,
        fairlearn=installed(),
        disparities=_disparities(report),
        now=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        style=files("feta.report").joinpath("report.css").read_text(encoding="utf-8"),
    )


@cache
def _template() -> "Template":
    made = environment("feta.report")
    made.filters |= {
        "percent": _percent,
        "short": partial(short, most=MAX_CHARACTERS),
        "long": partial(short, most=5 * MAX_CHARACTERS),
        "duration": duration,
    }
    return made.get_template("report.html.j2")


def _percent(share: float) -> str:
    return f"{share:.1%}"


def question(report: Report) -> str:
    """Say what was asked about each person."""
    names = either(report.summary.attributes).replace(" or ", " and ")
    words = words_for(report.model, report.source.unit)
    return f"Does this person have {words.apart}: {words.who} equal in every other column, with any values of {names}?"


def rule_words(model: Model, unit: str) -> str:
    """Say how scores become decisions."""
    rule, outcomes = model.rule, model.outcomes
    match rule:
        case Threshold(value=value, favors=favors, equality=equality):
            told = f"A score {favors} {value:.6g} is decided {outcomes[1]!r}, otherwise {outcomes[0]!r}; a score exactly there counts as {equality}."
            if not model.network.sigmoid:
                return told
            chance = 1 / (1 + math.exp(-max(value, -700.0)))  # exp(700) is finite
            return f"{told} Scores are log-odds, before the model's last sigmoid: {value:.6g} is the probability {chance:.6g}."
        case Argmax(classes=classes):
            return f"The class with the largest score, of {len(classes)}: {', '.join(classes[:12])}; the first one on a tie."
        case OneVsRest(chosen=chosen):
            return f"Whether the class with the largest score is {chosen!r}."
        case Tolerance(epsilon=epsilon):
            amount = f"{epsilon:,.6g} {unit}".strip()
            return f"The score itself. The scores of all counterparts of a person, the person among them, may span {amount} at most: highest less lowest."


def _disparities(report: Report) -> dict[str, list[Disparity]]:
    """Give fairlearn's measures by attribute, where the decision has two sides."""
    if not _two_sided(report.model.rule):
        return {}
    found = {
        name: disparities([one for _, one in report.groups.present(name)], ENOUGH_FOR_A_RATIO)
        for name in report.groups.by_attribute
    }
    return {name: rows for name, rows in found.items() if rows}


def _two_sided(rule: Rule) -> bool:
    return isinstance(rule, Threshold | OneVsRest)


def _chosen(report: Report) -> tuple[Grid, PairView] | None:
    """Choose the person for the picture: the first of the clearest pairs."""
    for shown in report.pairs:
        found = grid(report.model, shown.pair, words_for(report.model, report.source.unit).both)
        if found is not None:
            return found, shown
    return None


def _card(report: Report, shown: PairView) -> Card:
    model, pair = report.model, shown.pair
    before, after = model.space.decode(pair.person), model.space.decode(pair.counterpart)
    changed = [one for one in before if before[one] != after[one]]
    words = words_for(model, report.source.unit)
    one, other = (words.amount(number) for number in pair.margins(model.rule).tolist())
    first, second = (
        (model.outcomes[index] for index in pair.decisions) if pair.decisions else ("", "")
    )
    name = f" ({shown.name})" if shown.name else ""
    return Card(
        f"Row {shown.finding.row + 1}{name}",
        tuple((key, cell(before[key]), cell(after[key])) for key in changed),
        tuple((key, cell(before[key])) for key in before if key not in changed),
        (first, second),
        (one, other),
        shown.finding.runtime,
        shown.finding.replayed,
    )


def lines(report: Report, attribute: str) -> list[GroupLine]:
    """Give the groups of one attribute, with rates and ratios where the decision has two sides."""
    return _rated(report, report.groups.present(attribute))


def _rated(report: Report, groups: list[tuple[str, Group]]) -> list[GroupLine]:
    if not _two_sided(report.model.rule):
        return [GroupLine(name, group) for name, group in groups]
    rates = {
        name: (group.share(group.own[1]), group.share(group.fair[1])) for name, group in groups
    }
    sized = [rates[name] for name, group in groups if group.decided >= ENOUGH_FOR_A_RATIO]
    best = [max((one[side] for one in sized), default=0.0) for side in (0, 1)]
    found = []
    for name, group in groups:
        ratios = None
        if group.decided >= ENOUGH_FOR_A_RATIO and all(best):
            ratios = (rates[name][0] / best[0], rates[name][1] / best[1])
        found.append(GroupLine(name, group, rates[name], ratios))
    return found


def _intersections(report: Report) -> list[GroupLine]:
    """Give the largest intersections; with one attribute there are none."""
    if len(report.groups.bands) < 2:  # noqa: PLR2004 - two attributes intersect
        return []
    named = [(" · ".join(names), group) for names, group in report.groups.by_intersection.items()]
    largest = sorted(named, key=lambda one: (-one[1].people, one[0]))[:MAX_INTERSECTIONS]
    return _rated(report, largest)
