"""JUnit: a report as CI servers read it; a test an attribute, one for all together, one for what is open."""

from xml.etree import ElementTree as ET

from feta.io.sanitize import plain, shortened
from feta.report.report import Report
from feta.report.words import cell, either, headline, words_for


def junit(report: Report) -> str:
    """Render a report; a counterexample is a failure, somebody without an answer an error."""
    summary = report.summary
    words = words_for(report.model, report.source.unit)
    open_people = summary.statuses["undecided"] + summary.statuses["not audited"]
    suite = ET.Element("testsuite", name="feta audit")
    failures = 0
    for name in summary.attributes:
        case = _case(suite, report, f"nobody has {words.apart} by {name} alone")
        failures += _failed(case, summary.alone[name])
    every = f"nobody has {words.apart} by {either(summary.attributes)} together"
    failures += _failed(_case(suite, report, every), summary.statuses["unfair"], _pairs(report))
    last = _case(suite, report, "everybody has an answer")
    if open_people or report.partial:
        what = (
            "the audit was interrupted"
            if report.partial
            else f"{open_people} {'person has' if open_people == 1 else 'people have'} none"
        )
        ET.SubElement(last, "error", message=what)
    suite.set("tests", str(len(summary.attributes) + 2))
    suite.set("failures", str(failures))
    suite.set("errors", str(len(last)))
    out = ET.SubElement(suite, "system-out")
    out.text = plain(headline(summary, words, partial=report.partial))
    ET.indent(suite)
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(suite, encoding="unicode") + "\n"
    )


def _case(suite: ET.Element, report: Report, name: str) -> ET.Element:
    where = shortened(plain(report.source.model_file or "model"), 120)
    return ET.SubElement(suite, "testcase", classname=f"feta.{where}", name=plain(name))


def _failed(case: ET.Element, people: int, detail: str = "") -> bool:
    if people:
        failure = ET.SubElement(
            case,
            "failure",
            message=f"{people} {'person has' if people == 1 else 'people have'} one",
        )
        failure.text = detail
    return bool(people)


def _pairs(report: Report) -> str:
    """List the clearest pairs, a line each."""
    space = report.model.space
    lines = []
    for shown in report.pairs:
        before, after = space.decode(shown.pair.person), space.decode(shown.pair.counterpart)
        changes = [
            f"{one} {cell(before[one])} -> {cell(after[one])}"
            for one in before
            if before[one] != after[one]
        ]
        lines.append(plain(f"row {shown.finding.row + 1}: {', '.join(changes)}"))
    return "\n".join(lines)
