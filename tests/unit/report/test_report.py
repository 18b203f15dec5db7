import re
from pathlib import Path

import numpy as np
import pytest

import feta
from feta.audit.audit import audit
from feta.model import Model
from feta.report.bands import Bands
from feta.report.html import html
from feta.report.markdown import md
from feta.report.picture import grid
from feta.report.report import Gathering
from feta.report.words import duration
from tests.payloads import evil_model, report_of


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


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.0, "0 µs"),
        (1.6e-5, "16 µs"),
        (0.0026, "2.6 ms"),
        (0.52, "520 ms"),
        (61.0, "1.0 min"),
        (9e4, "25 h"),
    ],
)
def test_a_time_is_written_as_people_say_it(seconds: float, said: str) -> None:
    assert duration(seconds) == said
