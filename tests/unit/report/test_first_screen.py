"""The first screen of a report answers one question of each of five readers."""

import hashlib
import re
import subprocess
import sys
from dataclasses import replace
from html import unescape
from pathlib import Path

import numpy as np
import pytest

import feta
from feta.auditing.audit import Audit
from feta.auditing.report_data import ReportData, ReportSource, report_data
from feta.auditing.summary import AuditSummary
from feta.metrics.estimate import wilson
from feta.model import Model
from feta.readers.comparison import Comparison
from feta.report.html import html
from feta.vote.probability import probability_at

SPACE = feta.FeatureSpace(
    (
        feta.Integer("age", 18, 80, sensitive=True),
        feta.Categorical("sex", ("f", "m"), sensitive=True),
        feta.Real("income", 0, 9),
    )
)
COMPARED = Comparison(runtime="predict of the pipeline", rows=60, different=0, gap=0.0)
SOURCE = ReportSource(
    model_file="loan.onnx",
    data="people.csv",
    command="feta audit loan.onnx --data people.csv --out audit",
    compared=COMPARED,
)


def network(*, sigmoid: bool = True) -> feta.Network:
    return feta.Network.from_layers([([[0.05, 0.0, 1.0, 1.0]], [-6.0])], sigmoid=sigmoid)


def audited(model: Model, n_people: int = 60, **options: object) -> Audit:
    rng = np.random.default_rng(3)
    rows = [
        {
            "age": int(rng.integers(18, 81)),
            "sex": str(rng.choice(["f", "m"])),
            "income": float(rng.integers(0, 10)),
        }
        for _ in range(n_people)
    ]
    labels = [bool(rng.integers(2)) for _ in rows] if model.rule.two_sided else None
    return feta.audit(model, rows, labels=labels, **options)  # type: ignore[arg-type]


def data_of(result: Audit, **changes: object) -> ReportData:
    report = report_data(result.auditor, result.results, SOURCE)
    return replace(report, **changes)  # type: ignore[arg-type]


def first_screen(page: str) -> str:
    """Return the text of the header, without the table below it."""
    (header,) = re.findall(r"<header.*?</header>", page, re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", header)).split())


MODEL = Model(SPACE, network(), feta.Threshold.at_probability(0.5), outcomes=("no", "yes"))
RESULT = audited(MODEL)
REPORT = data_of(RESULT, certificate="5ea1" * 16)
UNFAIR = RESULT.summary.statuses["unfair"]
LOW, HIGH = wilson(UNFAIR / 60, 60)
SUMMARY = RESULT.summary
CLEAREST = max((view for view in REPORT.pairs if len(view.changed) == 1), key=lambda v: v.pair.gap)

# The reader, the question, and the lines of the first screen that answer it.
QUESTIONS = {
    "executive: how many people are affected, and what would it cost to end this?": [
        f"Unfair: {UNFAIR} of 60 people ({UNFAIR / 60:.1%}) have a counterpart with a different",
        f"would change {SUMMARY.flip_rate:.1%} of the decisions. Accuracy: {SUMMARY.accuracy:.1%}",
    ],
    "lawyer: what exactly was compared, how certain is it, and what is left out?": [
        "Each person with everybody who differs in age and sex only",
        "Proved, rounding included: fair people have the same decision as all counterparts",
        "Not covered Columns that reveal a sensitive one (proxies), different rates of groups, and "
        "what a law requires",
    ],
    "engineer: is this my model, and how do I repeat the audit?": [
        f"loan.onnx, id {MODEL.fingerprint[:16]}, schema id {SPACE.fingerprint[:16]}.",
        COMPARED.sentence(),
        f"UTC by FETA {feta.__version__}. Repeat it with: {SOURCE.command}",
        "5ea1" * 16,
    ],
    "data scientist: what does the share say about people who are not in the table?": [
        f"random sample, between {LOW:.1%} and {HIGH:.1%} of all such people have a counterexample "
        "(95% interval, Wilson)",
    ],
    "applicant's advocate: who would have got another decision?": [
        f"Row {CLEAREST.finding.row + 1}: {CLEAREST.changed[0]}",
        "and nothing else, changes the decision from",
        "(probability of yes: ",
    ],
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_first_screen_answers_each_reader(question: str) -> None:
    text = first_screen(html(REPORT))
    for line in QUESTIONS[question]:
        assert line in text, line


def test_the_headline_names_no_rate_by_an_abbreviation() -> None:
    (headline,) = re.findall(r"<h1>(.*?)</h1>", html(REPORT))
    assert "CE" not in headline


def test_probabilities_of_a_card_are_those_of_the_scores() -> None:
    page = html(REPORT)
    view = REPORT.pairs[0]
    before, after = (probability_at(score, "logit") for score in view.pair.scores.tolist())
    assert f"<td>probability of yes</td><td>{before:.1%}</td><td>{after:.1%}</td>" in page


@pytest.mark.parametrize("favors", ["above", "below"])
def test_the_probability_is_that_of_the_class_with_high_scores(favors: str) -> None:
    rule = feta.Threshold.at_probability(0.5, favors)  # type: ignore[arg-type]
    model = Model(SPACE, network(), rule, outcomes=("no", "yes"))
    outcome = "yes" if favors == "above" else "no"
    assert f"<td>probability of {outcome}</td>" in html(data_of(audited(model)))


def test_scores_without_a_link_have_no_probability() -> None:
    model = Model(SPACE, network(sigmoid=False), feta.Threshold(0.0))
    assert "probability" not in html(data_of(audited(model)))


def test_cards_do_not_repeat_what_others_say() -> None:
    cards = re.findall(r"<article>(.*?)</article>", html(data_of(audited(MODEL, 400))), re.DOTALL)
    kinds = [
        (
            tuple(re.findall(r'class="changed"><td>(.*?)</td>', card)),
            tuple(re.findall(r'class="decision"><td>decision</td>(.*?)</tr>', card)),
        )
        for card in cards
    ]
    assert cards
    assert max(kinds.count(kind) for kind in kinds) <= 2
    binary = [kind for kind in kinds if kind[0] == ("sex",)]
    assert len(set(binary)) == len(binary)  # f → m is said once per direction


def test_undecided_people_widen_the_interval_and_are_named() -> None:
    summary = AuditSummary(("age",))
    summary.statuses.update({"fair": 60, "unfair": 10, "undecided": 30})
    interval = summary.unfair_interval
    assert interval == (wilson(0.1, 100)[0], wilson(0.4, 100)[1])
    report = data_of(RESULT, summary=summary, pairs=())
    text = first_screen(html(report))
    assert "Without a verdict, and never counted as fair: 30 people." in text
    assert f"between {interval[0]:.1%} and {interval[1]:.1%}" in text
    assert AuditSummary(("age",)).unfair_interval is None


def test_a_partial_audit_states_no_interval() -> None:
    text = first_screen(html(data_of(RESULT, partial=True)))
    assert "No statement: the audit is not complete." in text


@pytest.mark.parametrize(
    ("provenance", "words"),
    [
        ("counted", "Counted: the model itself evaluated every counterpart"),
        ("sampled", "Sampled, not proved: a preprocessing step has unknown code"),
    ],
)
def test_the_certainty_is_that_of_the_provenance(provenance: str, words: str) -> None:
    summary = replace(RESULT.summary, provenance=provenance)  # type: ignore[arg-type]
    assert words in first_screen(html(data_of(RESULT, summary=summary)))


def test_a_regression_shows_the_scores_of_its_example() -> None:
    model = Model(SPACE, network(sigmoid=False), feta.Tolerance(0.5))
    text = first_screen(html(data_of(audited(model))))
    assert re.search(r"and nothing else, moves the score from \S+ to \S+\.", text)


def test_a_relation_is_stated_in_words() -> None:
    relation = feta.Constrained.of(SPACE, "age >= 30 or sex == 'f'")
    model = Model(SPACE, network(), feta.Threshold(0.0), relation=relation)
    text = first_screen(html(data_of(audited(model))))
    assert "Each person with the plausible people who differ in age and sex only." in text
    assert relation.sentences[0] in text


def test_group_rates_are_those_of_the_decisions_and_labels() -> None:
    page = html(REPORT)
    assert "<b>True positive rate</b> (TPR): of the people labeled <i>yes</i>" in page
    women = [
        (finding, label)
        for finding, label, person in zip(
            RESULT.findings, RESULT.labels or (), RESULT.people, strict=True
        )
        if SPACE.decode(person)["sex"] == "f"
    ]
    for label in (True, False):
        chosen = [finding for finding, known in women if bool(known) is label]
        now = sum(bool(finding.decision) for finding in chosen) / len(chosen)
        fair = sum(bool(finding.fair_decision) for finding in chosen) / len(chosen)
        cells = (f"{len(chosen)}", f"{now:.1%}", f"{fair:.1%}")
        assert "".join(f'<td class="n">{cell}</td>' for cell in cells) in page


def test_a_written_audit_names_the_seal_of_its_certificate(tmp_path: Path) -> None:
    audited(MODEL, 5, certify=True).write(tmp_path)
    end = (tmp_path / "certificate.jsonl").read_bytes().splitlines()[-1]
    seal = hashlib.sha256(end).hexdigest()
    assert f"<code>{seal}</code>" in (tmp_path / "report.html").read_text(encoding="utf-8")
    command = [sys.executable, "-m", "feta_check", str(tmp_path), "--seal", seal]
    assert subprocess.run(command, check=False, capture_output=True).returncode == 0
