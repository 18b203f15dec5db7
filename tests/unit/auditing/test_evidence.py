"""Evidence of audits: one certificate or pair per person, and one look of the checker at it."""

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import feta
from feta import Argmax, Budget, FeatureSpace, Integer, Model, Network, Real, Tolerance
from feta.arrays import Matrix
from feta.auditing import block_verdicts, counting
from feta.auditing.auditor import Auditor
from feta.auditing.finding import AuditFault
from feta.checker.admit import admit
from feta.checker.prove import prove
from feta.engine.exhaustive import ExhaustiveEngine
from feta.errors import CertificateError
from feta.query import PersonQuery, WorstAt
from feta.verdict.certificate import LatticeProof
from feta.verdict.tally import Tally
from feta.verdict.verdict import Fair, Reason, Unfair, Unknown, Verdict

SPACE = FeatureSpace(
    (
        Integer("age", 0, 4, sensitive=True),
        Integer("size", 0, 4, sensitive=True),
        Real("income", -20, 20),
    )
)
SLOPES = [1.0, 1.0, 1.0]
THRESHOLD = Model(SPACE, Network.from_layers([([SLOPES], [0.0])]), threshold=0.0)
CLASSES = Model(
    SPACE,
    Network.from_layers([([[1, 0, 1], [0, 1, 1], [0, 0, 0]], [0.0, 0.5, 0.25])]),
    Argmax(("a", "b", "c")),
)
SCORES = Model(SPACE, Network.from_layers([([[0.1, 1.0, 1.0]], [0.0])]), Tolerance(4.4))
PEOPLE = SPACE.encode([{"age": 2, "size": 1, "income": income} for income in (5, -2, -9, -4, 8)])


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the digests of the queries that the checker admits, as they are admitted."""
    digests: list[str] = []

    def spy(query: PersonQuery, verdict: Verdict, *, trusted: bool) -> Verdict:
        digests.append(query.digest)
        return admit(query, verdict, trusted=trusted)

    monkeypatch.setattr("feta.api.admit", spy)
    monkeypatch.setattr(block_verdicts, "admit", spy)
    return digests


@pytest.mark.parametrize("budget", [Budget(), Budget(seconds=60)])
@pytest.mark.parametrize("engine", ["lattice", "exhaustive", "milp"])
@pytest.mark.parametrize("model", [THRESHOLD, CLASSES])
def test_everybody_has_evidence_that_the_checker_saw_once(
    seen: list[str], model: Model, engine: str, budget: Budget
) -> None:
    findings = Auditor(model, engine, budget).audit(PEOPLE)
    assert {finding.status for finding in findings} == {"fair", "unfair"}
    queries = [WorstAt(model, person) for person in PEOPLE]
    assert Counter(seen) == Counter(query.digest for query in queries)
    for finding, query in zip(findings, queries, strict=True):
        if finding.status == "fair":
            assert finding.certificate is not None
            prove(finding.certificate, query)
            assert finding.fair_decision == finding.decision
        else:
            assert finding.pair is not None
            assert finding.pair.person.tolist() == query.person.tolist()


def test_a_regression_has_evidence_that_the_checker_saw_once(seen: list[str]) -> None:
    wide, narrow = SCORES, replace(SCORES, rule=Tolerance(1.0), threshold=None)
    for model, status in ((wide, "fair"), (narrow, "unfair")):
        seen.clear()
        findings = Auditor(model).audit(PEOPLE)
        assert {finding.status for finding in findings} == {status}
        counts = Counter(seen)
        assert [counts[WorstAt(model, person).digest] for person in PEOPLE] == [1] * len(PEOPLE)
    assert all(finding.certificate for finding in Auditor(wide).audit(PEOPLE))


@pytest.mark.parametrize("budget", [Budget(), Budget(seconds=60)])
@pytest.mark.parametrize("model", [THRESHOLD, CLASSES])
def test_an_unfair_row_is_checked_three_times_at_most(
    monkeypatch: pytest.MonkeyPatch, model: Model, budget: Budget
) -> None:
    auditor, checks = Auditor(model, budget=budget), []
    person = SPACE.encode([{"age": 2, "size": 1, "income": -2}])
    (finding,) = auditor.audit(person)
    assert finding.alone  # attributes are asked about, too
    original = FeatureSpace.check

    def count(self: FeatureSpace, people: Matrix, **options: Any) -> None:  # noqa: ANN401 - passed on
        checks.append(len(people))
        original(self, people, **options)

    monkeypatch.setattr(FeatureSpace, "check", count)
    auditor.audit(SPACE.encode([{"age": 2, "size": 1, "income": -2}]))
    assert len(checks) == 3


class Fake(ExhaustiveEngine):
    """An engine with changed verdicts or counts."""

    def __init__(
        self, verdicts: dict[str, Verdict] | None = None, *, unanimous: bool | None = None
    ) -> None:
        self.verdicts, self.unanimous = verdicts or {}, unanimous

    def solve_many(self, queries: Any, budget: Budget) -> list[Verdict]:  # noqa: ANN401 - passed on
        honest = super().solve_many(queries, budget)
        return [
            self.verdicts.get(query.digest, verdict)
            for query, verdict in zip(queries, honest, strict=True)
        ]

    def tally(self, *arguments: Any, **options: Any) -> Tally:  # noqa: ANN401 - passed on
        counts = super().tally(*arguments, **options)
        if self.unanimous is None:
            return counts
        by_class = np.full_like(counts.by_class, 0 if self.unanimous else 1)
        by_class[:, 0] = 25 if self.unanimous else 24
        return replace(counts, by_class=by_class, undecided=np.zeros(len(by_class), dtype=np.int64))


def use(monkeypatch: pytest.MonkeyPatch, engine: Fake, *, trusted: bool) -> None:
    for module in ("feta.api", block_verdicts.__name__, counting.__name__):
        monkeypatch.setattr(f"{module}.choose", lambda *_: engine)
    for module in ("feta.api", block_verdicts.__name__):
        monkeypatch.setattr(f"{module}.is_ours", lambda _: trusted)


UNFAIR, FAIR = PEOPLE[1:2], PEOPLE[:1]


def test_a_count_that_contradicts_a_proof_leaves_a_person_undecided(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for trusted, budget in ((True, Budget(seconds=60)), (False, Budget())):
        use(monkeypatch, Fake(unanimous=False), trusted=trusted)
        (finding,) = Auditor(THRESHOLD, budget=budget).audit(FAIR)
        assert (finding.status, finding.reason) == ("undecided", AuditFault.ENGINE_CONTRADICTION)
        assert (finding.verdict, finding.fair_decision) == (None, None)


def test_a_count_that_denies_a_counterexample_gives_no_fair_decision(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    use(monkeypatch, Fake(unanimous=True), trusted=True)
    (finding,) = Auditor(THRESHOLD).audit(UNFAIR)
    assert (finding.status, finding.fair_decision) == ("unfair", None)


def test_a_complete_count_proves_what_a_search_left_undecided(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    query = WorstAt(THRESHOLD, FAIR[0])
    unknown: dict[str, Verdict] = {query.digest: Unknown(Reason.SOLVER_FAILED)}
    for trusted in (True, False):  # the count of another package's engine is no proof
        use(monkeypatch, Fake(unknown), trusted=trusted)
        (finding,) = Auditor(THRESHOLD).audit(FAIR)
        assert finding.status == ("fair" if trusted else "undecided")
    use(monkeypatch, Fake(unknown), trusted=True)
    (finding,) = Auditor(THRESHOLD).audit(FAIR)
    assert finding.certificate is not None
    assert finding.certificate.proof == LatticeProof(25)
    prove(finding.certificate, query)


@pytest.mark.parametrize("budget", [Budget(), Budget(seconds=60)])
def test_a_false_certificate_of_another_package_is_rejected(
    monkeypatch: pytest.MonkeyPatch, budget: Budget
) -> None:
    claim = WorstAt(THRESHOLD, UNFAIR[0])
    honest = feta.verify(WorstAt(THRESHOLD, FAIR[0]), engine="exhaustive")
    assert isinstance(honest, Fair)
    certificate = replace(honest.certificate, query_digest=claim.digest)
    lie: dict[str, Verdict] = {claim.digest: Fair(certificate, "safe")}
    use(monkeypatch, Fake(lie, unanimous=True), trusted=False)
    with pytest.raises(CertificateError, match=r"^the certificate does not prove fairness"):
        Auditor(THRESHOLD, budget=budget).audit(UNFAIR)


def test_what_another_package_proves_is_proved_again(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, Fake(), trusted=False)
    findings = Auditor(THRESHOLD).audit(PEOPLE)
    expected = [finding.status for finding in Auditor(THRESHOLD, "exhaustive").audit(PEOPLE)]
    assert [finding.status for finding in findings] == expected
    assert {finding.runtime for finding in findings if finding.status == "fair"} == {"sensitive"}
    unfair = [finding.verdict for finding in findings if finding.status == "unfair"]
    assert unfair
    assert not any(isinstance(verdict, Unfair) and verdict.optimal for verdict in unfair)


def test_a_real_valued_attribute_cannot_be_audited() -> None:
    space = FeatureSpace((Real("age", 0, 4, sensitive=True), Real("income", -20, 20)))
    model = Model(space, Network.from_layers([([[1.0, 1.0]], [0.0])]))
    for income in (-2, 15):  # unfair, and fair
        with pytest.raises(feta.EngineError, match="'age', which has uncountably many values"):
            Auditor(model).audit(space.encode([{"age": 1, "income": income}]))


def test_people_of_a_block_have_the_worst_pairs_that_they_have_alone() -> None:
    """Searched together, everybody must be compared with their own objective."""
    rng = np.random.default_rng(1)
    layers = [
        (rng.normal(size=(8, 3)) / 4, rng.normal(size=8)),
        (rng.normal(size=(1, 8)), np.zeros(1)),
    ]
    model = Model(SPACE, Network.from_layers(layers, activation="relu"))
    rows = [
        {"age": int(rng.integers(5)), "size": int(rng.integers(5)), "income": income}
        for income in np.linspace(-5, 5, 60)
    ]
    people = SPACE.encode(rows)
    alone = [Auditor(model, "lattice").audit(people[row : row + 1])[0].pair for row in range(60)]
    gaps = [pair and pair.gap for pair in alone]
    assert len({gap for gap in gaps if gap}) > 10
    for _ in range(50):
        findings = Auditor(model, "lattice").audit(people)
        assert [finding.pair and finding.pair.gap for finding in findings] == gaps
