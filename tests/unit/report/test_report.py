import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import feta
from feta.auditing.audit import audit
from feta.auditing.finding import Finding
from feta.auditing.summary import AuditSummary, is_flip
from feta.cli.audit_words import show
from feta.engine.registry import choose
from feta.io.sanitize import json_text, visible
from feta.model import Model
from feta.readers.load import LoadedModel
from feta.report.audit_json import audit_json
from feta.report.bands import Bands
from feta.report.html import html
from feta.report.junit import junit
from feta.report.markdown import markdown, md
from feta.report.picture import grid
from feta.report.report import ReportBuilder, ReportSource
from feta.report.words import Words, duration, headline, words_for
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
    assert "Fair: all 72 people are proved to be decided alike" in page
    assert 'header class="fair"' in page
    empty = html(report_of(model, []))
    assert 'header class="open"' in empty
    assert "This is not a finding of fairness" in empty


def test_the_price_tells_how_many_are_decided_favorably_before_and_after() -> None:
    report = report_of(MODEL, ROWS)
    summary, name = report.summary, MODEL.outcomes[1]
    people = MODEL.space.encode(ROWS)
    own, fair = MODEL.decide(people), feta.FairPredictor(MODEL).decide(people)
    assert own.mean() != fair.mean()
    assert (summary.decisions[name], summary.fair_decisions[name]) == (own.sum(), fair.sum())
    cells = "".join(f'<td class="n">{share:.1%}</td>' for share in (own.mean(), fair.mean()))
    assert f"</i></td>{cells}</tr>" in html(report)
    assert "--vote-weights lets a table of people vote" in html(report)


def test_what_is_not_settled_is_told_without_a_word_of_unfairness() -> None:
    summary = AuditSummary(("age",))
    summary.statuses.update({"fair": 16, "not audited": 4})
    told = str(headline(summary, Words(), partial=False))
    assert (
        told
        == "Not settled: 16 people are proved to be decided alike; 4 rows could not be read, and no counterexample was found."
    )


def test_scores_before_a_sigmoid_are_called_log_odds() -> None:
    model = replace(
        MODEL, network=replace(MODEL.network, sigmoid=True), rule=feta.Threshold.at_probability(0.7)
    )
    assert words_for(model, "").lead == "score (log-odds)"
    assert words_for(MODEL, "").lead == "score"
    assert "0.847298 is the probability 0.7." in html(report_of(model, ROWS))


def test_the_page_names_the_engine_that_answered() -> None:
    report = report_of(MODEL, ROWS[:3])
    assert report.engine == "auto"
    assert f"Engine <code>{choose(MODEL).name}</code>" in html(report)


def test_a_missing_category_is_called_missing_in_groups() -> None:
    bands = Bands.of(feta.Categorical("sex", ("f", "m"), sensitive=True, missing=True))
    assert bands.names == ("f", "m", "missing")
    assert bands.name(np.array([0.0, 0.0, 1.0])) == "missing"


def test_a_missing_value_is_called_missing_in_pairs(capsys: pytest.CaptureFixture[str]) -> None:
    sex = feta.Categorical("sex", ("m",), sensitive=True, missing=True)
    space = feta.FeatureSpace((sex, feta.Real("income", 0, 9)))
    model = Model(space, feta.Network.from_layers([([[4.0, 0.0, 1.0]], [-5.0])]))
    report = report_of(model, [{"sex": "m", "income": 4.0}])
    show(LoadedModel(model), report, out=None)
    for told in (markdown(report), junit(report), capsys.readouterr().out):
        assert re.search("sex m (→|-&gt;) missing", told)


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
    builder = ReportBuilder(found.auditor)
    for finding in found.findings:
        builder.take(finding, found.people[finding.row])
    ages = dict(builder.groups.present("groupage"))
    young = [one for one, row in zip(found.findings, ROWS, strict=True) if row["groupage"] in range(18, 30)]  # fmt: skip
    assert next(iter(ages)) == "18 to 29"
    assert ages["18 to 29"].people == len(young)
    assert ages["18 to 29"].unfair == sum(one.status == "unfair" for one in young)
    assert ages["18 to 29"].own[1] == sum(bool(one.decision) for one in young)
    assert sum(one.people for one in builder.groups.by_intersection.values()) == len(ROWS)


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


def test_blanks_that_differ_can_be_seen_in_every_format_for_people() -> None:
    races = (" White", "White", "Non  white")
    space = feta.FeatureSpace(
        (feta.Categorical("race", races, sensitive=True), feta.Real("income", 0, 9))
    )
    model = feta.Model(space, feta.Network.from_layers([([[1.0, -1.0, -1.0, 0.1]], [-0.5])]))
    found = feta.audit(model, [{"race": "White", "income": 3.0}])
    builder = ReportBuilder(found.auditor)
    for finding in found.findings:
        builder.take(finding, found.people[finding.row])
    report = builder.report(ReportSource())
    assert "␠White" in html(report)
    assert "race White → ␠White" in markdown(report)
    assert "␠" not in json_text(audit_json(report))
    assert [visible(one) for one in (*races, " ", "a b", 3)] == [
        "␠White", "White", "Non␠␠white", "␠", "a b", "3",
    ]  # fmt: skip


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


SPACE = feta.FeatureSpace(
    (
        feta.Integer("age", 18, 90, sensitive=True),
        feta.Categorical("sex", ("f", "m"), sensitive=True),
        feta.Real("income", 0, 9),
    )
)
SPAN = Model(SPACE, feta.Network.from_layers([([[1.0, 0.0, 5.0, 1.0]], [0.0])]), feta.Tolerance(70))
PERSON = {"age": 54, "sex": "f", "income": 4}


def test_a_span_is_told_by_two_people_with_this_file_otherwise(
    capsys: pytest.CaptureFixture[str],
) -> None:
    report = report_of(SPAN, [PERSON])
    shown = report.pairs[0].pair
    assert [SPACE.decode(one)["age"] for one in (shown.person, shown.counterpart)] == [18, 90]
    page = html(report)
    for words in (
        "1 of 1 people has two counterparts whose scores are more than 70 p apart",
        "Does this person have two counterparts whose scores are more than 70 p apart: people equal",
        "two people with this file otherwise are named",
        "<th>lower score</th><th>higher score</th>",
        "may span 70 p at most: highest less lowest",
        "the lower score <span",
    ):
        assert words in page, words
    assert "the person <span" not in page
    show(LoadedModel(SPAN), report, out=None)
    for told in (markdown(report), capsys.readouterr().out):
        assert "two people with this file otherwise" in told
        assert "age 18 → 90" in told
    told = junit(report)
    assert "nobody has two counterparts whose scores are more than 70 p apart by age alone" in told
    assert "row 1: age 18 -&gt; 90" in told


def test_the_pair_of_one_attribute_keeps_the_person_s_other_values() -> None:
    """Age alone is enough; the pair of both attributes is of another sex on one side."""
    found = audit(SPAN, [PERSON]).findings[0]
    assert found.alone == ("age",)
    assert found.pair is not None
    assert SPACE.decode(found.pair.counterpart)["sex"] == "m"
    pair = report_of(SPAN, [PERSON]).pairs[0].pair
    assert {SPACE.decode(one)["sex"] for one in (pair.person, pair.counterpart)} == {"f"}
    other = report_of(SPAN, [PERSON | {"sex": "m"}]).pairs[0].pair
    assert {SPACE.decode(one)["sex"] for one in (other.person, other.counterpart)} == {"m"}


def test_the_picture_of_a_span_shows_who_is_too_far_above_the_lower_score() -> None:
    found = audit(SPAN, [PERSON]).findings[0]
    assert found.pair is not None
    picture = grid(SPAN, found.pair)
    assert picture is not None
    ages = np.arange(18, 91)
    due = [[age - 18 > 70 for age in ages], [age - 18 + 5 > 70 for age in ages]]
    assert picture.cells.tolist() == np.array(due, dtype=int).tolist()
    assert picture.cells[picture.marks[0]] == 0
    assert picture.cells[picture.marks[1]] == 1


def test_a_person_proved_fair_has_no_flip_by_rounding() -> None:
    found = Finding(0, "fair", 0.1 + 0.2, 0.0)
    assert not is_flip(found, 0.3)
    assert is_flip(replace(found, status="unfair"), 0.3)
    assert not is_flip(replace(found, fair_decision=None, status="unfair"), 0.3)
    assert is_flip(Finding(0, "unfair", True, False), None)
