"""Diff formats: a diff as a comment for a pull request, and as a test report for CI servers."""

from collections.abc import Iterator
from xml.etree import ElementTree as ET

from feta.io.sanitize import listed, plain
from feta.report.diff import Diff, change, shown
from feta.report.gate import Gate, GateResult, conclusion
from feta.report.markdown import md, sentence

MAX_NAMES = 20


def remarks(found: Diff) -> Iterator[str]:
    """Say what the two audits have in common, and what not."""
    same = "The same model" if found.same_model else "Another model"
    yield f"{same}, {'the same table' if found.same_data else 'another table'}."
    yield from (f"The question differs: {plain(one)}." for one in found.question_changes)
    yield from (f"People cannot be matched: {plain(one)}." for one in found.unmatched)
    for first, second, count in found.moves:
        people = "person" if count == 1 else "people"
        yield f"{count:,} {people}: {plain(first)} → {plain(second)}"
    if found.newly_unfair:
        yield f"Newly unfair: {listed(found.newly_unfair, MAX_NAMES)}"


def diff_markdown(found: Diff, gate: Gate) -> str:
    """Render a diff in a screenful."""
    lines = ["# Fairness audit: before and after\n", f"**{sentence(conclusion(found, gate))}**\n"]
    lines += ["| | before | after | change |", "| --- | ---: | ---: | ---: |"]
    for name, before, after in found.told_figures:
        cells = [name.replace("_", " "), shown(name, before), shown(name, after)]
        lines.append(f"| {' | '.join(map(md, [*cells, change(name, before, after)]))} |")
    return "\n".join([*lines, "", *(f"- {sentence(one)}" for one in remarks(found))]) + "\n"


def diff_junit(found: Diff, gate: Gate) -> str:
    """Render a diff as tests that fail where the gate closes, whatever the audits say by themselves."""
    outcome = gate.outcome(found)
    suite = ET.Element("testsuite", name="feta diff", tests="4")
    told = plain(conclusion(found, gate))
    names = {
        GateResult.NOT_COMPARABLE: "both audits asked the same question",
        GateResult.NOT_MATCHED: "the people of both audits can be matched one to one",
        GateResult.WORSE: "no more people are treated apart than before",
        GateResult.LESS_SETTLED: "no answer is missing that was there",
    }
    kinds = {GateResult.WORSE: "failure"}
    for one, name in names.items():
        case = ET.SubElement(suite, "testcase", classname="feta.diff", name=name)
        if one == outcome:
            ET.SubElement(case, kinds.get(one, "error"), message=told)
    suite.set("failures", str(int(outcome == GateResult.WORSE)))
    suite.set("errors", str(int(outcome not in (GateResult.WORSE, GateResult.NOT_WORSE))))
    ET.SubElement(suite, "system-out").text = "\n".join([told, *remarks(found)])
    ET.indent(suite)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(suite, encoding="unicode")}\n'
