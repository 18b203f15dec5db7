"""Scorers and relations of other packages work everywhere through their protocols."""

from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import feta
from feta import Categorical, FairAt, FairPredictor, FeatureSpace, Integer, Model, Network, WorstAt
from feta.api import verify_many
from feta.arrays import Vector
from feta.auditing.report_data import ReportSource, report_data
from feta.checker.coverage import check_coverage
from feta.engine.lattice import LatticeEngine
from feta.engine.protocol import UNLIMITED
from feta.relation.protocol import Relation
from feta.report.html import html
from feta.report.markdown import markdown
from feta.scorer.protocol import Scorer
from feta.verdict.certificate import Certificate, LatticeProof
from tests.extensions.toys import Blurred, Grown, Oldest, Square

SPACE = FeatureSpace(
    (
        Integer("age", 18, 25, sensitive=True),
        Categorical("sex", ("female", "male"), sensitive=True),
        Integer("income", 0, 40),
    )
)
SQUARE = Square((0.5, 0.0, 1.0, -0.75), 4.0)
LINEAR = Network.from_layers([([[0.5, 0.0, 1.0, -0.75]], [1.0])])
PEOPLE = [
    {"age": age, "sex": sex, "income": income}
    for age, sex, income in product((21, 25), ("female", "male"), (0, 9, 11, 12, 13, 17, 18, 40))
]


def score(scorer: object, row: Vector) -> Fraction:
    """Compute an exact score from the definition."""
    numbers = [Fraction(float(number)) for number in row]
    products = [Fraction(w) * x for w, x in zip(SQUARE.weights, numbers, strict=True)]
    total = sum(products, Fraction(0))
    return total * total - 4 if isinstance(scorer, Square) else total + 1


def counterparts(person: Vector, lowest: int) -> list[Vector]:
    rows = []
    for age, sex in product(range(lowest, 26), ((1.0, 0.0), (0.0, 1.0))):
        rows.append(np.array([age, *sex, person[3]]))
    return rows


CASES = [
    pytest.param(SQUARE, None, 18, id="scorer"),
    pytest.param(LINEAR, Grown(21), 21, id="relation"),
    pytest.param(SQUARE, Grown(21), 21, id="both"),
]


@pytest.mark.parametrize(("scorer", "relation", "lowest"), CASES)
def test_all_answers_equal_those_of_the_definition(
    scorer: Scorer, relation: Relation | None, lowest: int, tmp_path: Path
) -> None:
    model = Model(SPACE, scorer, threshold=0.0, relation=relation)  # type: ignore[arg-type]
    people = SPACE.encode(PEOPLE)
    tally = feta.tally(model, people)
    audit = feta.audit(model, PEOPLE)
    decisions = FairPredictor(model).decide(people)
    seen = set()
    for row, person in enumerate(people):
        own = score(scorer, person) >= 0
        scores = [score(scorer, other) for other in counterparts(person, lowest)]
        favorable = sum(value >= 0 for value in scores)
        fair = all((value >= 0) == own for value in scores)
        seen.add(fair)
        assert tally.by_class[row].tolist() == [len(scores) - favorable, favorable]
        assert decisions[row] == (2 * favorable >= len(scores))
        verdict, worst = feta.verify(FairAt(model, person)), feta.verify(WorstAt(model, person))
        assert isinstance(verdict, feta.Fair) == isinstance(worst, feta.Fair) == fair
        assert audit.findings[row].status == ("fair" if fair else "unfair")
        if isinstance(worst, feta.Unfair):
            gaps = [abs(v - score(scorer, person)) for v in scores if (v >= 0) != own]
            assert worst.counterexample.gap == float(max(gaps))
            assert worst.counterexample.counterpart[0] >= lowest
    assert seen == {True, False}
    audit.to_html(tmp_path / "report.html", (Oldest(),))
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    unfair = sum(finding.status == "unfair" for finding in audit.findings)
    assert "<h2>Unfair &lt;people&gt;</h2>" in page
    assert f"<p>{unfair} people &amp; more</p>" in page
    assert "<td>&lt;b&gt;</td><td>7</td>" in page


def test_a_section_is_shown_in_every_format_or_left_out() -> None:
    model = Model(SPACE, LINEAR, threshold=0.0)
    pages = []
    for people in (PEOPLE, PEOPLE[:1]):
        audit = feta.audit(model, people)
        data = report_data(audit.auditor, audit.results, ReportSource())
        pages.append((html(data, (Oldest(),)), markdown(data, (Oldest(),))))
    assert "Unfair &lt;people&gt;" in pages[0][0]
    assert "## Unfair &#60;people&#62;" in pages[0][1]
    assert "| status | people |\n| --- | --- |\n| &#60;b&#62; | 7 |" in pages[0][1]
    assert all("more</p>" not in page and "&#38; more" not in page for page in pages[1])


def test_the_default_relation_does_not_change_a_fingerprint() -> None:
    plain = Model(SPACE, LINEAR, threshold=0.0)
    other = Model(SPACE, LINEAR, threshold=0.0, relation=Grown(21))
    assert (
        plain.fingerprint
        == Model(SPACE, LINEAR, threshold=0.0, relation=plain.relation).fingerprint
    )
    assert plain.fingerprint != other.fingerprint


@pytest.mark.parametrize("engine", ["lattice", "milp"])
def test_engines_that_need_networks_and_all_assignments_refuse(engine: str) -> None:
    for model in (
        Model(SPACE, SQUARE, threshold=0.0),
        Model(SPACE, LINEAR, threshold=0.0, relation=Grown(21)),
    ):
        with pytest.raises(feta.EngineError, match="does not accept this model"):
            feta.verify(FairAt(model, SPACE.encode(PEOPLE)[0]), engine=engine)


# Near the threshold 0, the score of an 18-year-old man with income 12 is 2^-30, of others ±0.5 n.
BLURRED_WEIGHTS = (0.5, 0.0, 0.0, -0.75)


@pytest.mark.parametrize(("constant", "status"), [(0.0, "undecided"), (2.0**-30, "unfair")])
def test_scores_known_to_within_a_radius_are_decided_or_stay_undecided(
    constant: float, status: str
) -> None:
    """With the constant 0, the person aged 18 scores exactly 0, which no radius separates."""
    scorer = Blurred(BLURRED_WEIGHTS, constant)
    model = Model(SPACE, scorer, threshold=0.0)
    (person,) = SPACE.encode([{"age": 18, "sex": "male", "income": 12}])
    assert Fraction(9) - Fraction(9) == 0  # 0.5 · 18 − 0.75 · 12
    fair_at, worst_at = feta.verify(FairAt(model, person)), feta.verify(WorstAt(model, person))
    counts = feta.tally(model, person[None, :])
    if status == "undecided":
        assert isinstance(fair_at, feta.Unknown)
        assert fair_at.reason is worst_at.reason is feta.Reason.NOT_SEPARABLE  # type: ignore[union-attr]
        assert counts.undecided.tolist() == [2]
        with pytest.raises(feta.Undecided, match="may tie exactly"):
            model.decide(person[None, :])
    else:
        assert isinstance(fair_at, feta.Unfair)
        assert isinstance(worst_at, feta.Unfair)
        assert not worst_at.optimal  # the order of two intervals may be unknown
        assert counts.undecided.tolist() == [0]
    # The majority of 16 is certain although two of them are not.
    assert FairPredictor(model).decide(person[None, :]).tolist() == [True]
    audit = feta.audit(model, [{"age": 18, "sex": "male", "income": 12}])
    assert [finding.status for finding in audit.findings] == [status]


def test_people_who_are_provably_alike_are_fair_although_scores_are_intervals() -> None:
    model = Model(SPACE, Blurred(BLURRED_WEIGHTS, 0.0), threshold=0.0)
    (person,) = SPACE.encode([{"age": 18, "sex": "male", "income": 40}])
    assert isinstance(feta.verify(FairAt(model, person)), feta.Fair)
    assert isinstance(feta.verify(WorstAt(model, person)), feta.Fair)


def test_an_uncertain_majority_of_intervals_is_no_decision() -> None:
    blurred = Blurred(BLURRED_WEIGHTS, 0.0, radius=100.0)
    with pytest.raises(feta.Undecided, match="cannot be separated from a tie"):
        FairPredictor(Model(SPACE, blurred, threshold=0.0)).decide(SPACE.encode(PEOPLE[:1]))


@pytest.mark.parametrize(
    ("epsilon", "expected"),
    [(0.25, feta.Unfair), (0.75, feta.Unknown), (1.0, feta.Unknown), (2.0, feta.Fair)],
)
def test_a_span_of_intervals_is_fair_or_unfair_only_if_all_its_points_are(
    epsilon: float, expected: type
) -> None:
    """Two ages, scores 0 and 1, each known to within 0.25: the span is from 0.5 to 1.5."""
    space = FeatureSpace((Integer("age", 0, 1, sensitive=True), Integer("income", 0, 1)))
    scorer = Blurred((1.0, 0.0), 0.0, radius=0.25)
    model = Model(space, scorer, feta.Tolerance(epsilon))
    (person,) = space.encode([{"age": 0, "income": 0}])
    for query in (FairAt(model, person), WorstAt(model, person)):
        assert isinstance(feta.verify(query), expected)
    assert not feta.spread(model, person[None, :]).decided.any()


def test_people_whom_the_relation_does_not_admit_get_no_verdict_but_a_fair_decision() -> None:
    """Only people of 21 and more are compared; younger ones are approved, older ones are not."""
    network = Network.from_layers([([[-1.0, 0.0, 0.0, 0.0]], [20.0])])
    model = Model(SPACE, network, threshold=0.0, relation=Grown(21))
    records = [{"age": age, "sex": "male", "income": 3} for age in (18, 24)]
    people = SPACE.encode(records)
    assert model.decide(people).tolist() == [True, False]
    young, old = (feta.verify(FairAt(model, person)) for person in people)
    assert isinstance(young, feta.Unknown)
    assert young.reason is feta.Reason.NOT_ADMITTED
    assert isinstance(old, feta.Fair)
    audit = feta.audit(model, records)
    assert [finding.status for finding in audit.findings] == ["undecided", "fair"]
    assert [finding.fair_decision for finding in audit.findings] == [False, False]
    assert FairPredictor(model).decide(people).tolist() == [False, False]


def test_a_relation_without_counterparts_decides_nothing() -> None:
    model = Model(SPACE, LINEAR, threshold=0.0, relation=Grown(99))
    person = SPACE.encode(PEOPLE[:1])
    for query in (FairAt(model, person[0]), WorstAt(model, person[0])):
        verdict = feta.verify(query)
        assert isinstance(verdict, feta.Unknown)
        certificate = Certificate(query.digest, "other", LatticeProof(0))
        with pytest.raises(feta.CertificateError, match="does not cover every counterpart"):
            check_coverage(certificate, query)
    with pytest.raises(feta.Undecided):
        FairPredictor(model).decide(person)


def test_queries_about_several_models_are_answered_by_an_engine_for_each() -> None:
    short = FeatureSpace((Integer("a", 0, 3, sensitive=True), Integer("x", 0, 9)))
    long = FeatureSpace((Integer("a", 0, 69_999, sensitive=True), Integer("x", 0, 9)))
    network = Network.from_layers([([[1.0, 1.0]], [-10.0])])
    models = [Model(space, network, threshold=0.0) for space in (short, long)]
    queries = [FairAt(model, np.zeros(2)) for model in models]
    for verdicts in (verify_many(queries), [feta.verify(query) for query in queries]):
        assert [type(verdict) for verdict in verdicts] == [feta.Fair, feta.Unfair]
    with pytest.raises(feta.EngineError, match="'lattice' does not accept this model"):
        LatticeEngine().solve(queries[1], UNLIMITED)
