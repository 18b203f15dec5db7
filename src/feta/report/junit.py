"""A report as JUnit XML for CI: one test per attribute, one for all together, one for answers."""

from xml.etree import ElementTree as ET

from feta.auditing.report_data import ReportData
from feta.io.sanitize import plain, shortened
from feta.report.words import changes, early_end, either, headline, words_for


def junit(report: ReportData) -> str:
    """Render a report; a counterexample is a failure, a missing answer is an error."""
    summary = report.summary
    words = words_for(report.model, report.source.unit)
    nobody = f"nobody has {words.counterexample}"
    suite = ET.Element("testsuite", name="feta audit")
    failures = 0
    for name in summary.attributes:
        case = _add_case(suite, report, f"{nobody} if only {name} differs")
        failures += _add_failure(case, summary.alone[name])
    case = _add_case(suite, report, f"{nobody} if {either(summary.attributes)} differs")
    failures += _add_failure(case, summary.statuses["unfair"], _pair_lines(report))
    last = _add_case(suite, report, "everybody has an answer")
    without = summary.statuses["undecided"] + summary.statuses["not audited"]
    if without or report.partial:
        message = f"{without} {'person has' if without == 1 else 'people have'} none"
        if report.partial:
            message = early_end(report) if report.stopped else "the audit was interrupted"
        ET.SubElement(last, "error", message=message)
    suite.set("tests", str(len(summary.attributes) + 2))
    suite.set("failures", str(failures))
    suite.set("errors", str(len(last)))
    out = ET.SubElement(suite, "system-out")
    out.text = plain(headline(summary, words, partial=report.partial))
    ET.indent(suite)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(suite, encoding="unicode")}\n'


def _add_case(suite: ET.Element, report: ReportData, name: str) -> ET.Element:
    model = shortened(plain(report.source.model_file or "model"), 120)
    return ET.SubElement(suite, "testcase", classname=f"feta.{model}", name=plain(name))


def _add_failure(case: ET.Element, people: int, detail: str = "") -> bool:
    if people:
        message = f"{people} {'person has' if people == 1 else 'people have'} one"
        ET.SubElement(case, "failure", message=message).text = detail
    return bool(people)


def _pair_lines(report: ReportData) -> str:
    """List the top pairs, one line per pair."""
    return "\n".join(
        plain(f"row {view.finding.row + 1}: {changes(view, arrow='->')}") for view in report.pairs
    )
