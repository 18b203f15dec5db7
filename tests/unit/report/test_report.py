import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import feta
from feta.auditing.audit import audit
from feta.auditing.finding import Finding
from feta.auditing.grid import grid
from feta.auditing.report_data import ReportSource, report_data
from feta.auditing.summary import AuditSummary, is_flip
from feta.cli.audit_words import show
from feta.engine.registry import choose
from feta.io.sanitize import json_text, visible
from feta.metrics.bands import Bands
from feta.model import Model
from feta.query import CountOf
from feta.readers.load import LoadedModel
from feta.report.audit_json import audit_json
from feta.report.html import html, rule_words
from feta.report.junit import junit
from feta.report.markdown import markdown, md
from feta.report.words import duration, headline, words_for
from feta.rule.words import RuleWords
from feta.verdict.certificate import Certificate, LatticeProof
from tests.payloads import evil_model, report_of


def test_markdown_shows_a_plain_name_unchanged() -> None:
    assert md("income 2.5 (EUR)") == "income 2.5 (EUR)"
    assert md("a_b|c") == "a&#95;b&#124;c"


CERTIFICATE = Certificate("", "", LatticeProof(1))
MODEL = evil_model("group")
ROWS: list[dict[str, object]] = [
    {"groupage": age, "group": "other", "groupshared": "group", "income": n % 9}
    for n, age in enumerate(range(18, 90))
]


def test_the_page_has_all_sections_and_loads_nothing(tmp_path: Path) -> None:
    result = audit(MODEL, ROWS, labels=[bool(n % 2) for n in range(len(ROWS))])
    result.to_html(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    for heading in (
        "The question", "Selected counterexamples", "The smallest change",
        "One person, every combination", "Counterexamples by group", "By intersection",
        "What is not decided or not certain", "What enforcing fairness would cost",
        "What is not claimed", "Annex: group rates", "Method",
    ):  # fmt: skip
        assert heading in page
    assert MODEL.fingerprint in page
    assert f"{result.summary.statuses['unfair']} of {len(ROWS)} people" in page
    assert not re.search(r"""( src=| href=|url\(|@import|https?:/)""", page)
    assert "accuracy" in page


def test_a_fair_and_an_empty_audit_have_a_page() -> None:
    network = feta.Network.from_layers([([[0.0, 0.0, 0.0, 0.0, 0.0, 1.0]], [-4.0])])
    model = Model(MODEL.space, network)
    page = html(report_of(model, ROWS))
    assert "Fair: each of the 72 people provably gets the same decision" in page
    assert 'header class="fair"' in page
    empty = html(report_of(model, []))
    assert 'header class="undecided"' in empty
    assert "This is not a finding of fairness" in empty


def test_the_cost_table_has_favorable_rates_before_and_after() -> None:
    report = report_of(MODEL, ROWS)
    summary, name = report.summary, MODEL.outcomes[1]
    people = MODEL.space.encode(ROWS)
    decisions, fair = MODEL.decide(people), feta.FairPredictor(MODEL).decide(people)
    assert decisions.mean() != fair.mean()
    assert (summary.decisions[name], summary.fair_decisions[name]) == (decisions.sum(), fair.sum())
    cells = "".join(f'<td class="n">{share:.1%}</td>' for share in (decisions.mean(), fair.mean()))
    assert f"</i></td>{cells}</tr>" in html(report)
    assert "--vote-weights counts the votes of a table of people" in html(report)


def test_an_undecided_headline_does_not_mention_unfairness() -> None:
    summary = AuditSummary(("age",))
    summary.statuses.update({"fair": 16, "not audited": 4})
    assert str(headline(summary, RuleWords(), partial=False)) == (
        "Undecided: 16 people are proved fair; 4 rows could not be read, and no counterexample was "
        "found."
    )


def test_scores_before_a_sigmoid_are_called_log_odds() -> None:
    model = replace(
        MODEL, scorer=replace(MODEL.network, sigmoid=True), rule=feta.Threshold.at_probability(0.7)
    )
    assert words_for(model, "").margin == "score (log-odds)"
    assert words_for(MODEL, "").margin == "score"
    assert "0.847298 is the probability 0.7." in html(report_of(model, ROWS))


@pytest.mark.parametrize(
    ("favors", "equality", "expected"),
    [
        ("above", "favorable", "at or above 0.25 gives the decision 'ja', a score below it gives"),
        (
            "above",
            "unfavorable",
            "above 0.25 gives the decision 'ja', a score at or below it gives",
        ),
        ("below", "favorable", "at or below 0.25 gives the decision 'ja', a score above it gives"),
        (
            "below",
            "unfavorable",
            "below 0.25 gives the decision 'ja', a score at or above it gives",
        ),
    ],
)
def test_the_rule_names_the_side_of_a_tie(favors: str, equality: str, expected: str) -> None:
    space = feta.FeatureSpace((feta.Integer("age", 18, 19, sensitive=True),))
    network = feta.Network.from_layers([([[1.0]], [0.0])])
    rule = feta.Threshold(0.25, favors, equality)  # type: ignore[arg-type]
    model = Model(space, network, rule, outcomes=("nein", "ja"))
    assert rule_words(model, "") == f"A score {expected} 'nein'."


def test_the_page_names_the_engine_that_answered() -> None:
    report = report_of(MODEL, ROWS[:3])
    assert report.engine == "auto"
    assert f"Engine <code>{choose(CountOf(MODEL)).name}</code>" in html(report)


def test_a_missing_category_is_called_missing_in_groups() -> None:
    bands = Bands.of(feta.Categorical("sex", ("f", "m"), sensitive=True, missing=True))
    assert bands.names == ("f", "m", "missing")
    assert bands.indices(np.array([[0.0, 0.0, 1.0]])).tolist() == [2]


def test_a_missing_value_is_called_missing_in_pairs(capsys: pytest.CaptureFixture[str]) -> None:
    sex = feta.Categorical("sex", ("m",), sensitive=True, missing=True)
    space = feta.FeatureSpace((sex, feta.Real("income", 0, 9)))
    model = Model(space, feta.Network.from_layers([([[4.0, 0.0, 1.0]], [-5.0])]))
    report = report_of(model, [{"sex": "m", "income": 4.0}])
    show(LoadedModel(model), report, out=None)
    for text in (markdown(report), junit(report), capsys.readouterr().out):
        assert re.search("sex m (→|-&gt;) missing", text)


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


def test_a_page_about_1000_people_is_below_a_megabyte() -> None:
    rows = [row | {"income": n % 9} for n, row in enumerate(ROWS * 14)][:1000]
    assert len(html(report_of(MODEL, rows)).encode()) < 1_000_000


def test_group_counts_are_those_of_the_findings() -> None:
    result = audit(MODEL, ROWS)
    groups = result.results.groups
    ages = dict(groups.present("groupage"))
    rows = zip(result.findings, ROWS, strict=True)
    young = [finding for finding, row in rows if row["groupage"] in range(18, 30)]
    assert next(iter(ages)) == "18 to 29"
    assert ages["18 to 29"].people == len(young)
    assert ages["18 to 29"].unfair == sum(finding.status == "unfair" for finding in young)
    assert ages["18 to 29"].decisions[1] == sum(bool(finding.decision) for finding in young)
    assert sum(group.people for group in groups.by_intersection.values()) == len(ROWS)


def test_the_picture_shows_the_decisions_of_the_model() -> None:
    report = report_of(MODEL, ROWS)
    pair = report.pairs[0].pair
    picture = grid(MODEL, pair)
    assert picture is not None
    assert picture.cells.shape == (2, 73)
    counterparts = np.concatenate(list(MODEL.space.lattice.counterparts(pair.person)))
    assert (picture.cells == MODEL.decide(counterparts).reshape(73, 2).T).all()
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
    (index,) = bands.indices(attribute.encode([value]))
    assert bands.names[index] == name


def test_blanks_are_visible_in_every_format_for_people() -> None:
    races = (" White", "White", "Non  white")
    space = feta.FeatureSpace(
        (feta.Categorical("race", races, sensitive=True), feta.Real("income", 0, 9))
    )
    model = feta.Model(space, feta.Network.from_layers([([[1.0, -1.0, -1.0, 0.1]], [-0.5])]))
    result = feta.audit(model, [{"race": "White", "income": 3.0}])
    report = report_data(result.auditor, result.results, ReportSource())
    assert "␠White" in html(report)
    assert "race White → ␠White" in markdown(report)
    assert "␠" not in json_text(audit_json(report))
    assert [visible(value) for value in (*races, " ", "a b", 3)] == [
        "␠White", "White", "Non␠␠white", "␠", "a b", "3",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 µs"),
        (1.6e-5, "16 µs"),
        (0.0026, "2.6 ms"),
        (0.52, "520 ms"),
        (61.0, "1.0 min"),
        (9e4, "25 h"),
    ],
)
def test_a_duration_is_written_in_its_largest_unit(seconds: float, text: str) -> None:
    assert duration(seconds) == text


SPACE = feta.FeatureSpace(
    (
        feta.Integer("age", 18, 90, sensitive=True),
        feta.Categorical("sex", ("f", "m"), sensitive=True),
        feta.Real("income", 0, 9),
    )
)
SPAN = Model(SPACE, feta.Network.from_layers([([[1.0, 0.0, 5.0, 1.0]], [0.0])]), feta.Tolerance(70))
PERSON = {"age": 54, "sex": "f", "income": 4}


def test_a_span_is_shown_by_two_counterparts(
    capsys: pytest.CaptureFixture[str],
) -> None:
    report = report_of(SPAN, [PERSON])
    pair = report.pairs[0].pair
    ends = (pair.person, pair.counterpart)
    assert [SPACE.decode(end)["age"] for end in ends] == [18, 90]
    page = html(report)
    for words in (
        "1 of 1 people (100.0%) has two counterparts whose scores differ by more than 70 p.",
        "Does this person have two counterparts whose scores differ by more than 70 p? A counter",
        "the audit found two counterparts",
        "<th>lower score</th><th>higher score</th>",
        "may span 70 p at most: highest less lowest",
        "the lower score <span",
    ):
        assert words in page, words
    assert "the person <span" not in page
    show(LoadedModel(SPAN), report, out=None)
    for text in (markdown(report), capsys.readouterr().out):
        assert "only differences" in text
        assert "age 18 → 90" in text
    text = junit(report)
    case = "nobody has two counterparts whose scores differ by more than 70 p if only age differs"
    assert case in text
    assert "row 1: age 18 -&gt; 90" in text


def test_a_pair_of_one_attribute_keeps_the_other_values_of_the_person() -> None:
    """Age alone is enough; the worst pair of both attributes also changes the sex."""
    finding = audit(SPAN, [PERSON]).findings[0]
    assert finding.alone == ("age",)
    assert finding.pair is not None
    assert SPACE.decode(finding.pair.counterpart)["sex"] == "m"
    pair = report_of(SPAN, [PERSON]).pairs[0].pair
    assert {SPACE.decode(end)["sex"] for end in (pair.person, pair.counterpart)} == {"f"}
    other = report_of(SPAN, [PERSON | {"sex": "m"}]).pairs[0].pair
    assert {SPACE.decode(end)["sex"] for end in (other.person, other.counterpart)} == {"m"}


def test_the_picture_of_a_span_shows_scores_above_the_tolerance() -> None:
    finding = audit(SPAN, [PERSON]).findings[0]
    assert finding.pair is not None
    picture = grid(SPAN, finding.pair)
    assert picture is not None
    ages = np.arange(18, 91)
    expected = [[age - 18 > 70 for age in ages], [age - 18 + 5 > 70 for age in ages]]
    assert picture.cells.tolist() == np.array(expected, dtype=int).tolist()
    assert picture.cells[picture.marks[0]] == 0
    assert picture.cells[picture.marks[1]] == 1


def test_rounding_is_no_flip_for_a_person_proved_fair() -> None:
    fair, unknown = feta.Fair(CERTIFICATE), feta.Unknown(feta.Reason.OUT_OF_TIME)
    finding = Finding(0, fair, 0.1 + 0.2, 0.0)
    assert not is_flip(finding, 0.3)
    assert is_flip(replace(finding, verdict=unknown), 0.3)
    assert not is_flip(replace(finding, fair_decision=None, verdict=unknown), 0.3)
    assert is_flip(Finding(0, unknown, True, False), None)
