import csv
import io
import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from markdown_it import MarkdownIt

import feta
from feta.audit.audit import audit
from feta.model import Model
from feta.plain import plain, write_row
from feta.report.bands import Bands
from feta.report.html import html
from feta.report.junit import junit
from feta.report.markdown import markdown, md
from feta.report.picture import grid
from feta.report.report import Gathering, Report, Source

PAYLOADS = [
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "\"><svg onload=alert(1)>",
    "'><body onload=alert(1)>", "</title><script>alert(1)</script>", "</style><script>x</script>",
    "<iframe src=https://evil.example>", "<a href='javascript:alert(1)'>x</a>", "<!-- -->",
    "]]><script>x</script>", "{{ 7*7 }}", "{% for x in y %}", "${7*7}", "&lt;script&gt;",
    "<link rel=stylesheet href=//evil.example>", "<meta http-equiv=refresh content=0>",
    "=HYPERLINK(\"https://evil.example\")", "=1+1", "+1+1", "-1+1", "@SUM(A1)", "\t=1+1", "\r=1+1",
    " =cmd|' /C calc'!A0", "＝1+1",  # noqa: RUF001 - meant
    "a\",\"=1+1", "a;=1+1", "a\n=1+1",
    "[x](https://evil.example)", "![x](https://evil.example/x.png)", "`code` **bold** _it_",
    "| a | b |", "# heading", "https://evil.example", "www.evil.example", "@everyone #1",
    "\x1b[31mred\x1b[0m", "\x1b]0;title\x07", "\u202eevil", "\x00\x08\x7f\x9b31m",
]  # fmt: skip


def evil_model(payload: str) -> Model:
    """A model whose names and values are all the payload, or begin with it."""
    space = feta.FeatureSpace(
        (
            feta.Integer(f"{payload}age", 18, 90, sensitive=True),
            feta.Categorical(payload, (payload, "other"), sensitive=True),
            feta.Categorical(f"{payload}shared", (payload, f"{payload}2")),
            feta.Real("income", 0, 9),
        )
    )
    network = feta.Network.from_layers([([[0.1, 2.0, -2.0, 0.0, 0.0, 1.0]], [-8.0])])
    return Model(space, network, outcomes=(payload, f"{payload}yes"))


def report_of(model: Model, rows: list[dict[str, object]], name: str = "p") -> Report:
    found = audit(model, rows)
    gathering = Gathering(found.auditor)
    for finding in found.findings:
        gathering.take(finding, found.people[finding.row], name=name)
    return gathering.report(Source(name, name, "", f"feta audit {name}", unit=name))


def evil_report(payload: str) -> Report:
    model = evil_model(payload)
    ages, other = f"{payload}age", f"{payload}shared"
    rows: list[dict[str, object]] = [
        {ages: 20, payload: payload, other: payload, "income": 4.0},
        {ages: 60, payload: "other", other: f"{payload}2", "income": 5.0},
    ]
    return report_of(model, rows, payload)


class Seen(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs


def shape(page: str) -> tuple[set[str], set[str]]:
    seen = Seen()
    seen.feed(page)
    return set(seen.tags) - {"wbr"}, {name for name, _ in seen.attributes}


def test_there_are_forty_payloads() -> None:
    assert len(set(PAYLOADS)) == 40


@pytest.mark.parametrize("payload", PAYLOADS)
def test_no_payload_is_alive_in_any_format(payload: str) -> None:
    report = evil_report(payload)
    assert report.pairs
    page = html(report)
    harmless = html(evil_report("harmless"))
    assert shape(page) == shape(harmless)
    assert not {"script", "img", "iframe", "a", "link", "object"} & shape(page)[0]
    texts = (page, markdown(report), junit(report))
    for text in texts:
        assert all(one.isprintable() or one == "\n" for one in text)
    told = markdown(report)
    assert not re.search(r"<|https?://|www\.|\]\(|(?<!&)#1|@[a-z]", told, re.IGNORECASE)
    assert {line.count("|") for line in told.splitlines() if line.startswith("|")} == {5}
    rendered = MarkdownIt("commonmark", {"html": True}).enable("table").render(told)
    bland = {"h1", "p", "strong", "table", "thead", "tbody", "tr", "th", "td", "ul", "li", "code"}
    assert shape(rendered)[0] <= bland
    suite = ET.fromstring(junit(report))
    assert {one.tag for one in suite.iter()} <= {"testsuite", "testcase", "failure", "system-out"}


@pytest.mark.parametrize("payload", PAYLOADS)
def test_no_payload_is_alive_in_a_spreadsheet_or_a_terminal(payload: str) -> None:
    stream = io.StringIO()
    write_row(stream, [payload, 1.5])
    cells = next(csv.reader(io.StringIO(stream.getvalue())))
    assert len(cells) == 2
    assert not cells[0].lstrip(" ").startswith(("=", "+", "-", "@", "\t", "\r", "＝"))  # noqa: RUF001 - meant
    assert plain(payload).isprintable()


def test_markdown_shows_a_plain_name_as_it_is() -> None:
    assert md("income 2.5 (EUR)") == "income 2.5 (EUR)"
    assert md("a_b|c") == "a&#95;b&#124;c"


MODEL = evil_model("group")
ROWS: list[dict[str, object]] = [
    {"groupage": age, "group": "other", "groupshared": "group", "income": n % 9}
    for n, age in enumerate(range(18, 90))
]


def test_the_page_says_all_it_must_and_needs_nothing_else(tmp_path: Path) -> None:
    found = audit(MODEL, ROWS, labels=[bool(n % 2) for n in range(len(ROWS))])
    found.to_html(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    for heading in (
        "The question", "The clearest pairs", "The smallest change", "One person, every combination",
        "How often", "By intersection", "What stays open", "What enforcing fairness would cost",
        "What is not claimed", "Annex: group rates", "Method",
    ):  # fmt: skip
        assert heading in page
    assert MODEL.fingerprint in page
    assert f"{found.summary.statuses['unfair']} of {len(ROWS)} people" in page
    assert not re.search(r"""( src=| href=|url\(|@import|https?:/)""", page)
    assert "accuracy" in page


def test_a_fair_and_an_empty_audit_have_a_page() -> None:
    network = feta.Network.from_layers([([[0.0, 0.0, 0.0, 0.0, 0.0, 1.0]], [-4.0])])
    model = Model(MODEL.space, network)
    page = html(report_of(model, ROWS))
    assert "No: all 72 people are proved to be decided alike" in page
    assert 'header class="fair"' in page
    empty = html(report_of(model, []))
    assert 'header class="open"' in empty
    assert "This is not a finding of fairness" in empty


@pytest.mark.parametrize("rule", [feta.Argmax(("a", "b", "c")), feta.Tolerance(0.5)])
def test_other_rules_have_a_page(rule: feta.Argmax | feta.Tolerance) -> None:
    space = feta.FeatureSpace(
        (feta.Integer("age", 18, 90, sensitive=True), feta.Real("income", 0, 9))
    )
    slopes = [[0.1, 0.0], [0.0, 1.0], [0.05, 0.5]][: rule.outputs]
    model = Model(space, feta.Network.from_layers([(slopes, [0.0] * len(slopes))]), rule)
    page = html(report_of(model, [{"age": 30, "income": 4}, {"age": 70, "income": 1}]))
    assert "of 2 people" in page
    assert "<svg" in page


def test_a_thousand_people_fit_into_a_megabyte() -> None:
    rows = [row | {"income": n % 9} for n, row in enumerate(ROWS * 14)][:1000]
    assert len(html(report_of(MODEL, rows)).encode()) < 1_000_000


def test_group_counts_are_those_of_the_findings() -> None:
    found = audit(MODEL, ROWS)
    gathering = Gathering(found.auditor)
    for finding in found.findings:
        gathering.take(finding, found.people[finding.row])
    ages = dict(gathering.groups.present("groupage"))
    young = [one for one, row in zip(found.findings, ROWS, strict=True) if row["groupage"] in range(18, 30)]  # fmt: skip
    assert next(iter(ages)) == "18 to 29"
    assert ages["18 to 29"].people == len(young)
    assert ages["18 to 29"].unfair == sum(one.status == "unfair" for one in young)
    assert ages["18 to 29"].own[1] == sum(bool(one.decision) for one in young)
    assert sum(one.people for one in gathering.groups.by_intersection.values()) == len(ROWS)


def test_the_picture_shows_the_model_s_own_decisions() -> None:
    report = report_of(MODEL, ROWS)
    pair = report.pairs[0].pair
    picture = grid(MODEL, pair)
    assert picture is not None
    assert picture.cells.shape == (2, 73)
    everyone = np.concatenate(list(MODEL.space.lattice.counterparts(pair.person)))
    assert (picture.cells == MODEL.decide(everyone).reshape(73, 2).T).all()
    (row, column), (other_row, other_column) = picture.marks
    assert (picture.cells[row, column], picture.cells[other_row, other_column]) == pair.decisions


@pytest.mark.parametrize(
    ("attribute", "value", "name"),
    [
        (feta.Integer("a", 1, 4), 4, "4"),
        (feta.Integer("a", 19, 75), 75, "66 to 75"),
        (feta.Levels("a", (1.0, 1.5, 2.0)), 1.5, "1.5"),
        (feta.Real("a", 0, 60), 60, "50 to 60"),
        (feta.Integer("a", 1, 4, missing=True), None, "missing"),
        (feta.Categorical("a", (True, False)), False, "False"),
    ],
)
def test_a_value_falls_into_its_band(
    attribute: feta.Integer | feta.Levels | feta.Real | feta.Categorical, value: object, name: str
) -> None:
    bands = Bands.of(attribute)
    assert bands.name(attribute.encode([value])[0]) == name
    assert name in bands.names
