from dataclasses import replace

import numpy as np
import pytest

import feta
from feta.engine import registry
from feta.engine.exhaustive import ExhaustiveEngine
from feta.engine.registry import engines
from feta.verdict.certificate import Certificate, LatticeProof
from tests.examples import PERSON, SPACE, linear


def test_verify_worst_and_tally_agree() -> None:
    model = linear(age=1.0, bias=-31.0)
    first = feta.verify(feta.FairAt(model, PERSON), engine="exhaustive")
    worst = feta.worst(model, PERSON)
    assert isinstance(first, feta.Unfair)
    assert isinstance(worst, feta.Unfair)
    assert SPACE.decode(first.counterexample.counterpart)["age"] == 31
    assert SPACE.decode(worst.counterexample.counterpart)["age"] == 90
    assert (first.optimal, worst.optimal) == (False, True)
    assert feta.tally(model, PERSON[None, :]).favorable.tolist() == [2 * 60]


def test_tally_reads_no_sensitive_column_but_checks_the_others() -> None:
    hidden = np.array([np.nan, np.nan, np.nan, 50.0])
    assert feta.tally(linear(), hidden[None, :]).favorable.tolist() == [146]
    hidden[3] = 101.0
    with pytest.raises(feta.DomainError, match=r"'income' is invalid: got 101\.0"):
        feta.tally(linear(), hidden[None, :])


def test_an_unknown_engine_is_refused_everywhere() -> None:
    match = (
        r"unknown engine: got 'exhaustiv'; expected one of 'auto', .*; did you mean 'exhaustive'\?"
    )
    with pytest.raises(feta.EngineError, match=match):
        feta.verify(feta.FairAt(linear(), PERSON), engine="exhaustiv")
    with pytest.raises(feta.EngineError, match=match):
        feta.worst(linear(), PERSON, engine="exhaustiv")
    with pytest.raises(feta.EngineError, match=match):
        feta.tally(linear(), PERSON[None, :], engine="exhaustiv")


LIMIT = feta.Model(
    SPACE, feta.Network.from_layers([([[1.0, 0, 0.5, 0]], [0.0])]), feta.Tolerance(60.0)
)


def test_a_spread_is_over_all_counterparts() -> None:
    hidden = np.array([[np.nan, np.nan, np.nan, 50.0]])
    spread = feta.spread(LIMIT, hidden)
    assert (spread.lowest.tolist(), spread.highest.tolist()) == ([18.0], [90.5])
    assert spread.median.tolist() == [54.0]  # the lower of 54 and 54.5
    assert spread.span.tolist() == [72.5]
    assert spread.decided.tolist() == [True]


def test_a_threshold_model_has_a_spread() -> None:
    spread = feta.spread(linear(age=1.0, bias=-31.0), PERSON[None, :])
    assert (spread.median.tolist(), spread.lowest.tolist()) == ([23.0], [-13.0])


@pytest.mark.parametrize("budget", [feta.Budget(seconds=0), feta.Budget(evaluations=145)])
def test_an_unfinished_spread_is_undecided(budget: feta.Budget) -> None:
    spread = feta.spread(LIMIT, PERSON[None, :], budget=budget)
    assert spread.decided.tolist() == [False]
    assert np.isnan([spread.median, spread.lowest, spread.highest]).all()


def test_a_regression_model_has_no_tally_and_several_classes_no_spread() -> None:
    three = feta.Model(
        SPACE, feta.Network.from_layers([(np.ones((3, 4)), [0.0] * 3)]), feta.Argmax(tuple("abc"))
    )
    message = r"invalid rule: got a Tolerance; .*; use feta\.spread"
    with pytest.raises(feta.EngineError, match=message):
        feta.tally(LIMIT, PERSON[None, :])
    with pytest.raises(
        feta.EngineError, match="wrong number of network outputs: got 3; expected 1 for a spread"
    ):
        feta.spread(three, PERSON[None, :])
    with pytest.raises(feta.EngineError, match="unknown engine: got 'exhaustiv'; expected"):
        feta.spread(LIMIT, PERSON[None, :], engine="exhaustiv")


@pytest.mark.parametrize(("epsilon", "fair"), [(72.5, True), (np.nextafter(72.5, 0), False)])
def test_a_tolerance_is_verified_to_the_last_ulp(epsilon: float, *, fair: bool) -> None:
    model = feta.Model(SPACE, LIMIT.network, feta.Tolerance(epsilon))
    for verdict in (feta.verify(feta.FairAt(model, PERSON)), feta.worst(model, PERSON)):
        assert isinstance(verdict, feta.Fair) == fair
        if isinstance(verdict, feta.Unfair):
            pair = verdict.counterexample
            low, high = SPACE.decode(pair.person), SPACE.decode(pair.counterpart)
            assert (low["age"], low["sex"]) == (18, "female")
            assert (high["age"], high["sex"]) == (90, "male")
            assert pair.gap == 72.5


@pytest.mark.parametrize("engine", ["exhaustive", "lattice", "milp"])
@pytest.mark.parametrize("epsilon", [40.0, 72.5])
def test_the_verdict_of_a_tolerance_is_the_same_for_every_counterpart(
    engine: str, epsilon: float
) -> None:
    """The largest gap from age 54 is 36.5; from 18 to 90 it is twice as large."""
    model = feta.Model(SPACE, LIMIT.network, feta.Tolerance(epsilon))
    for age in (18, 54, 90):
        person = SPACE.encode({"age": age, "sex": "female", "income": 50})[0]
        for query in (feta.FairAt(model, person), feta.WorstAt(model, person)):
            verdict = feta.verify(query, engine=engine)
            assert isinstance(verdict, feta.Fair if epsilon == 72.5 else feta.Unfair)


def test_counts_of_an_untrusted_engine_are_not_a_proof(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Miscounting(ExhaustiveEngine):
        """An engine of a plugin that counts all counterparts in one class."""

        def tally(self, *arguments: object, **options: object) -> feta.Tally:
            counts = super().tally(*arguments, **options)  # type: ignore[arg-type]
            total = counts.by_class.sum(axis=1)
            return replace(counts, by_class=np.stack([total, 0 * total], axis=1))

    patched = {"miscounting": Miscounting(), **engines()}
    monkeypatch.setattr(registry, "engines", lambda: patched)
    audit = feta.audit(linear(age=1.0, bias=-31.0), [SPACE.decode(PERSON)], engine="miscounting")
    assert [finding.status for finding in audit.findings] == ["unfair"]


def test_a_contradiction_of_counts_and_proof_is_undecided(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Split(ExhaustiveEngine):
        """An engine whose counts show two decisions although there is one."""

        def tally(self, *arguments: object, **options: object) -> feta.Tally:
            counts = super().tally(*arguments, **options)  # type: ignore[arg-type]
            return replace(counts, by_class=counts.by_class + 1)

    patched = {"split": Split(), **engines()}
    monkeypatch.setattr(registry, "engines", lambda: patched)
    audit = feta.audit(linear(age=1.0), [SPACE.decode(PERSON)], engine="split")
    assert [finding.status for finding in audit.findings] == ["undecided"]
    assert "please report this error" in audit.findings[0].reason


def test_a_false_claim_of_an_untrusted_engine_raises_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Liar(ExhaustiveEngine):
        """An engine of a plugin that claims that every person is treated fairly."""

        def solve(self, query: feta.FairAt, budget: feta.Budget) -> feta.Fair:  # noqa: ARG002 - part of the protocol
            return feta.Fair(Certificate(query.digest, "liar", LatticeProof(146)))

    patched = {"liar": Liar(), **engines()}
    monkeypatch.setattr(registry, "engines", lambda: patched)
    fair, unfair = linear(age=1.0), linear(age=1.0, bias=-31.0)
    assert isinstance(feta.verify(feta.FairAt(fair, PERSON), engine="liar"), feta.Fair)
    with pytest.raises(
        feta.CertificateError, match=r"a counterpart with a different decision, {'age': 31"
    ):
        feta.verify(feta.FairAt(unfair, PERSON), engine="liar")
