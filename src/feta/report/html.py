"""A report as one HTML page: no script, no external address, light and dark colors."""

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
    outcome_class_words,
    source_notes,
    violation_sentence,
    words_for,
)
from feta.rule import Argmax, OneVsRest, Rule, Threshold, Tolerance

if TYPE_CHECKING:
    from jinja2 import Template

# Maximum rows of the tables; the files next to the report have all of them.
MAX_INTERSECTIONS = 15
MAX_UNANSWERED = 20
MAX_COLUMNS = 200

# Characters of a name or value.
MAX_CHARACTERS = 120

# Classes that are named in the description of the rule.
MAX_CLASSES = 12

# Smaller groups have no ratio: one more or one less person would change it too much.
MIN_PEOPLE_FOR_RATIO = 10


@dataclass(frozen=True, slots=True)
class Card:
    """A pair side by side: first the differences, then what both have in common."""

    title: str
    changed: tuple[tuple[str, str, str], ...]
    shared: tuple[tuple[str, str], ...]
    decisions: tuple[str, str]
    margins: tuple[str, str]
    runtime: str
    replayed: bool | None


@dataclass(frozen=True, slots=True)
class GroupLine:
    """One group in a table; ratios are relative to the group with the highest rate."""

    name: str
    group: Group
    rates: tuple[float, float] | None = None  # favorable: by the model, fair
    ratios: tuple[float, float] | None = None


def html(report: Report) -> str:
    """Render a report; the template escapes every name and value."""
    model, summary = report.model, report.summary
    words = words_for(model, report.source.unit)
    picture, picture_of = _picture(report) or (None, None)
    return _template().render(
        report=report,
        summary=summary,
        model=model,
        words=words,
        answer=headline(summary, words, partial=report.partial),
        question=question(report),
        rule=rule_words(model, report.source.unit),
        outcome_classes=outcome_class_words(report.source.outcome_classes),
        shared=[a for a in model.space.attributes if not model.space.is_sensitive(a)],
        max_columns=MAX_COLUMNS,
        cards=[_card(report, view) for view in report.pairs],
        violation=violation_sentence(summary, words),
        by_attribute={name: group_lines(report, name) for name in report.groups.by_attribute},
        intersections=_intersections(report),
        picture=picture,
        picture_of=picture_of,
        svg=svg,
        notes=[*notes(summary, report.source.runtime), *source_notes(report.source.notes)],
        caveats=list(caveats(model)),
        compared=compared(report.source),
        favorable=model.outcomes[1] if _is_two_sided(model.rule) else None,
        max_unanswered=MAX_UNANSWERED,
        bad_kinds=listed_kinds(report.bad_rows),
        min_people=MIN_PEOPLE_FOR_RATIO,
        fairlearn=installed(),
        disparities=_disparities(report),
        now=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        style=files("feta.report").joinpath("report.css").read_text(encoding="utf-8"),
    )


@cache
def _template() -> "Template":
    jinja = environment("feta.report")
    jinja.filters |= {
        "percent": _percent,
        "short": partial(short, most=MAX_CHARACTERS),
        "long": partial(short, most=5 * MAX_CHARACTERS),
        "duration": duration,
    }
    return jinja.get_template("report.html.j2")


def _percent(share: float) -> str:
    return f"{share:.1%}"


def question(report: Report) -> str:
    """Return the question that the audit answers about each person."""
    names = either(report.summary.attributes).replace(" or ", " and ")
    words = words_for(report.model, report.source.unit)
    return (
        f"Does this person have {words.counterexample}? A counterpart is equal in every other "
        f"column, and has any values of {names}."
    )


def rule_words(model: Model, unit: str) -> str:
    """Describe how scores become decisions."""
    rule = model.rule
    match rule:
        case Threshold():
            return _threshold_words(model, rule)
        case Argmax(classes=classes):
            return (
                f"The decision is the class with the largest score, of {len(classes)}: "
                f"{', '.join(classes[:MAX_CLASSES])}; on a tie, the first one."
            )
        case OneVsRest(chosen=chosen):
            return f"The decision is whether the class with the largest score is {chosen!r}."
        case Tolerance(epsilon=epsilon):
            amount = f"{epsilon:,.6g} {unit}".strip()
            return (
                "The result is the score itself. The scores of all counterparts of a person, "
                f"including the person, may span {amount} at most: highest less lowest."
            )


def _threshold_words(model: Model, rule: Threshold) -> str:
    unfavorable, favorable = model.outcomes
    sides = ("above", "below") if rule.favors == "above" else ("below", "above")
    ties = ("at or ", "") if rule.equality == "favorable" else ("", "at or ")
    first, second = (f"{tie}{side}" for tie, side in zip(ties, sides, strict=True))
    words = (
        f"A score {first} {rule.value:.6g} gives the decision {favorable!r}, a score {second} it "
        f"gives {unfavorable!r}."
    )
    if not model.scorer.sigmoid:
        return words
    probability = 1 / (1 + math.exp(-max(rule.value, -700.0)))  # exp(700) is finite
    return (
        f"{words} Scores are log-odds, before the model's last sigmoid: {rule.value:.6g} is the "
        f"probability {probability:.6g}."
    )


def _disparities(report: Report) -> dict[str, list[Disparity]]:
    """Return fairlearn's metrics by attribute, if the decision has two sides."""
    if not _is_two_sided(report.model.rule):
        return {}
    results = {
        name: disparities([group for _, group in report.groups.present(name)], MIN_PEOPLE_FOR_RATIO)
        for name in report.groups.by_attribute
    }
    return {name: rows for name, rows in results.items() if rows}


def _is_two_sided(rule: Rule) -> bool:
    return isinstance(rule, Threshold | OneVsRest)


def _picture(report: Report) -> tuple[Grid, PairView] | None:
    """Return the picture of the first pair that has one."""
    names = words_for(report.model, report.source.unit).pair_names
    for view in report.pairs:
        picture = grid(report.model, view.pair, names)
        if picture is not None:
            return picture, view
    return None


def _card(report: Report, view: PairView) -> Card:
    model, pair = report.model, view.pair
    before, after = model.space.decode(pair.person), model.space.decode(pair.counterpart)
    changed = [name for name in before if before[name] != after[name]]
    words = words_for(model, report.source.unit)
    margins = [words.amount(number) for number in pair.margins(model.rule).tolist()]
    decisions = [model.outcomes[index] for index in pair.decisions] or ["", ""]
    name = f" ({view.name})" if view.name else ""
    return Card(
        f"Row {view.finding.row + 1}{name}",
        tuple((key, cell(before[key]), cell(after[key])) for key in changed),
        tuple((key, cell(before[key])) for key in before if key not in changed),
        (decisions[0], decisions[1]),
        (margins[0], margins[1]),
        view.finding.runtime,
        view.finding.replayed,
    )


def group_lines(report: Report, attribute: str) -> list[GroupLine]:
    """Return the groups of one attribute, with rates and ratios if the decision has two sides."""
    return _with_rates(report, report.groups.present(attribute))


def _with_rates(report: Report, groups: list[tuple[str, Group]]) -> list[GroupLine]:
    if not _is_two_sided(report.model.rule):
        return [GroupLine(name, group) for name, group in groups]
    rates = {
        name: (group.share(group.decisions[1]), group.share(group.fair_decisions[1]))
        for name, group in groups
    }
    large = [rates[name] for name, group in groups if group.decided >= MIN_PEOPLE_FOR_RATIO]
    highest = [max((pair[side] for pair in large), default=0.0) for side in (0, 1)]
    lines = []
    for name, group in groups:
        ratios = None
        if group.decided >= MIN_PEOPLE_FOR_RATIO and all(highest):
            ratios = (rates[name][0] / highest[0], rates[name][1] / highest[1])
        lines.append(GroupLine(name, group, rates[name], ratios))
    return lines


def _intersections(report: Report) -> list[GroupLine]:
    """Return the largest intersections; with one attribute there are none."""
    if len(report.groups.bands) < 2:  # noqa: PLR2004 - an intersection needs two attributes
        return []
    named = [(" · ".join(names), group) for names, group in report.groups.by_intersection.items()]
    largest = sorted(named, key=lambda item: (-item[1].people, item[0]))[:MAX_INTERSECTIONS]
    return _with_rates(report, largest)
