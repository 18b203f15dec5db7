"""Names and values that are active content wherever they are shown without escaping."""

import feta
from feta.auditing.audit import audit
from feta.auditing.block import Block
from feta.auditing.report_data import ReportData, ReportSource, report_data
from feta.auditing.results import AuditResults
from feta.model import Model

PAYLOADS = [
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "\"><svg onload=alert(1)>",
    "'><body onload=alert(1)>", "</title><script>alert(1)</script>", "</style><script>x</script>",
    "<iframe src=https://evil.example>", "<a href='javascript:alert(1)'>x</a>", "<!-- -->",
    "]]><script>x</script>", "{{ 7*7 }}", "{% for x in y %}", "${7*7}", "&lt;script&gt;",
    "<link rel=stylesheet href=//evil.example>", "<meta http-equiv=refresh content=0>",
    "=HYPERLINK(\"https://evil.example\")", "=1+1", "+1+1", "-1+1", "@SUM(A1)", "\t=1+1", "\r=1+1",
    " =cmd|' /C calc'!A0", "＝1+1",  # noqa: RUF001 - some spreadsheets accept it
    "a\",\"=1+1", "a;=1+1", "a\n=1+1",
    "[x](https://evil.example)", "![x](https://evil.example/x.png)", "`code` **bold** _it_",
    "| a | b |", "# heading", "https://evil.example", "www.evil.example", "@everyone #1",
    "[bold red]x[/]", "[link=https://evil.example]x[/link]", "[/]", ":warning:", "%n%s{0}",
    "<style>*{display:none}</style>", "<svg><script>alert(1)</script></svg>",
    "<math><mi//xlink:href=x>",
    "&#60;script&#62;alert(1)", "<details open ontoggle=alert(1)>", "\u200b=1+1",
    "\ufeff=1+1", "\xa0=1+1",
    "\x1b]8;;https://evil.example\x07x\x1b]8;;\x07", "\x1b[2J\x1b[H", "\u2066evil\u2069\u200f",
    "\ud800<b>",
    "\x1b[31mred\x1b[0m", "\x1b]0;title\x07", "\u202eevil", "\x00\x08\x7f\x9b31m",
]  # fmt: skip


def evil_model(payload: str) -> Model:
    """Return a model whose names and values are the payload or start with it."""
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


def report_of(model: Model, rows: list[dict[str, object]], name: str = "p") -> ReportData:
    """Audit some rows, and build the report with a text in every field that accepts one."""
    result = audit(model, rows)
    block = Block(0, result.people, (None,) * len(rows), (name,) * len(rows))
    results = AuditResults.of(model)
    results.add(block.audited(result.findings))
    source = ReportSource(name, name, "", f"feta audit {name}", unit=name)
    return report_data(result.auditor, results, source)


def evil_report(payload: str) -> ReportData:
    """Return the report about a model and people that contain a payload everywhere."""
    model = evil_model(payload)
    ages, other = f"{payload}age", f"{payload}shared"
    rows: list[dict[str, object]] = [
        {ages: 20, payload: payload, other: payload, "income": 4.0},
        {ages: 60, payload: "other", other: f"{payload}2", "income": 5.0},
    ]
    return report_of(model, rows, payload)
