"""Rates by group under their standard names: selection, true positive and false positive rate."""

from dataclasses import dataclass

from feta.auditing.groups import Group
from feta.auditing.report_data import ReportData

# Smaller groups have no ratio: one more or one less person would change it too much.
MIN_PEOPLE = 10


@dataclass(frozen=True, slots=True)
class LabeledRate:
    """The share of favorable decisions among people with one label."""

    people: int
    now: float
    fair: float


@dataclass(frozen=True, slots=True)
class GroupLine:
    """One group in a table; ratios are relative to the group with the highest rate."""

    name: str
    group: Group
    rates: tuple[float, float] | None = None  # favorable: by the model, fair
    ratios: tuple[float, float] | None = None
    true_positives: LabeledRate | None = None
    false_positives: LabeledRate | None = None


def group_lines(report: ReportData, attribute: str) -> list[GroupLine]:
    """Return the groups of one attribute, with rates and ratios if the decision has two sides."""
    return with_rates(report, report.groups.present(attribute))


def with_rates(report: ReportData, groups: list[tuple[str, Group]]) -> list[GroupLine]:
    """Return the lines of groups."""
    if not report.model.rule.two_sided:
        return [GroupLine(name, group) for name, group in groups]
    rates = {
        name: (group.share(group.decisions[1]), group.share(group.fair_decisions[1]))
        for name, group in groups
    }
    large = [rates[name] for name, group in groups if group.decided >= MIN_PEOPLE]
    highest = [max((pair[side] for pair in large), default=0.0) for side in (0, 1)]
    lines = []
    for name, group in groups:
        ratios = None
        if group.decided >= MIN_PEOPLE and all(highest):
            ratios = (rates[name][0] / highest[0], rates[name][1] / highest[1])
        positives, negatives = (labeled_rate(group, label) for label in (1, 0))
        lines.append(GroupLine(name, group, rates[name], ratios, positives, negatives))
    return lines


def labeled_rate(group: Group, label: int) -> LabeledRate | None:
    """Return how often people with a label get the favorable decision; None if nobody has it."""
    cases = {case: number for case, number in group.cases.items() if case.label == label}
    people = sum(cases.values())
    if not people:
        return None
    now = sum([number for case, number in cases.items() if case.model])
    fair = sum([number for case, number in cases.items() if case.fair])
    return LabeledRate(people, now / people, fair / people)
