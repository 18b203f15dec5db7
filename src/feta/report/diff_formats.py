"""A difference between two audits as Markdown for pull requests, and as JUnit XML for CI."""

from collections.abc import Iterator
from xml.etree import ElementTree as ET

from feta.io.sanitize import listed, plain
from feta.report.diff import Diff, change_text, figure_text
from feta.report.gate import Gate, GateResult, conclusion
from feta.report.markdown import md, sentence

MAX_NAMES = 20

# The test case that fails for each result of the gate.
TEST_CASES = {
    GateResult.NOT_COMPARABLE: "both audits answer the same question",
    GateResult.NOT_MATCHED: "the people of both audits can be matched one to one",
    GateResult.WORSE: "no more people have a counterexample than before",
    GateResult.LESS_SETTLED: "no answer was lost",
}


def remarks(diff: Diff) -> Iterator[str]:
    """State what is the same in the two audits, and what differs."""
    same = "The same model" if diff.same_model else "Another model"
    yield f"{same}, {'the same table' if diff.same_data else 'another table'}."
    yield from (f"The question differs: {plain(change)}." for change in diff.question_changes)
    yield from (f"People cannot be matched: {plain(reason)}." for reason in diff.unmatched)
    for first, second, count in diff.moves:
        people = "person" if count == 1 else "people"
        yield f"{count:,} {people}: {plain(first)} → {plain(second)}"
    if diff.newly_unfair:
        yield f"Newly unfair: {listed(diff.newly_unfair, MAX_NAMES)}"


def diff_markdown(diff: Diff, gate: Gate) -> str:
    """Render a diff as a short Markdown page."""
    lines = ["# Fairness audit: before and after\n", f"**{sentence(conclusion(diff, gate))}**\n"]
    lines += ["| | before | after | change |", "| --- | ---: | ---: | ---: |"]
    for name, before, after in diff.known_figures:
        cells = [name.replace("_", " "), figure_text(name, before), figure_text(name, after)]
        lines.append(f"| {' | '.join(map(md, [*cells, change_text(name, before, after)]))} |")
    return "\n".join([*lines, "", *(f"- {sentence(remark)}" for remark in remarks(diff))]) + "\n"


def diff_junit(diff: Diff, gate: Gate) -> str:
    """Render a diff as test cases, of which one fails if the gate is closed.

    The results of the two audits themselves do not matter.
    """
    result = gate.outcome(diff)
    suite = ET.Element("testsuite", name="feta diff", tests=str(len(TEST_CASES)))
    message = plain(conclusion(diff, gate))
    for failing, name in TEST_CASES.items():
        case = ET.SubElement(suite, "testcase", classname="feta.diff", name=name)
        if failing == result:
            kind = "failure" if result == GateResult.WORSE else "error"
            ET.SubElement(case, kind, message=message)
    suite.set("failures", str(int(result == GateResult.WORSE)))
    suite.set("errors", str(int(result not in (GateResult.WORSE, GateResult.NOT_WORSE))))
    ET.SubElement(suite, "system-out").text = "\n".join([message, *remarks(diff)])
    ET.indent(suite)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(suite, encoding="unicode")}\n'
