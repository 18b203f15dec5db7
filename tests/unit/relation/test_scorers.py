"""Constraints with every kind of scorer and rule, compared with brute force over raw records."""

from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest

import feta
from feta import Argmax, Constrained, FairPredictor, Model, Threshold, Tolerance, read_callable
from feta.arrays import Vector
from feta.auditing.auditor import Auditor
from feta.checker.admit import admit
from feta.checker.coverage import check_coverage
from feta.checker.prove import prove
from feta.engine.protocol import UNLIMITED, Budget
from feta.rule import Rule
from feta.verdict.certificate import Certificate, LatticeProof
from tests import counted, forests, oracle
from tests.counted import OPTIONS, SPACE, people
from tests.strategies import random_network

AGES, SEXES = range(18, 30), ("female", "male")
CONDITIONS = (
    "2 * age - income >= 20",
    "age >= 24 or sex == 'female'",
    "housing == 'own' or age < 27",
)


def plausible(record: Mapping[Any, Any]) -> bool:
    """The conditions, written by hand."""
    return bool(
        2 * record["age"] - record["income"] >= 20
        and (record["age"] >= 24 or record["sex"] == "female")
        and (record["housing"] == "own" or record["age"] < 27)
    )


def related(record: dict[str, Any]) -> list[dict[str, Any]]:
    everybody = [record | {"age": age, "sex": sex} for age, sex in product(AGES, SEXES)]
    return [other for other in everybody if plausible(other)]


class Refusing:
    """A function that raises for implausible people other than those of the table."""

    def __init__(self, table: list[dict[str, Any]]) -> None:
        self.known = {tuple(record.values()) for record in table}

    def __call__(self, frame: pd.DataFrame) -> np.ndarray:
        for row in frame[["age", "sex", "income", "housing"]].to_dict("records"):
            assert plausible(row) or tuple(row.values()) in self.known, row
        return counted.approve(frame)


def test_a_counted_model_never_sees_implausible_counterparts() -> None:
    table = people(10)
    scorer = read_callable(Refusing(table), SPACE, options=OPTIONS)
    model = Model(SPACE, scorer, relation=Constrained.of(SPACE, *CONDITIONS))
    check(model, table, lambda record: bool(counted.approve(pd.DataFrame([record]))[0]))


def test_forests_are_counted_and_searched_exactly() -> None:
    rng = np.random.default_rng(4)
    for _ in range(6):
        forest = forests.random_forest(rng, SPACE)
        middle = float(forests.scores(forest, SPACE.encode(people(1))[0])[0])
        model = Model(SPACE, forest, Threshold(middle), relation=Constrained.of(SPACE, *CONDITIONS))

        def decide(record: dict[str, Any], model: Model = model) -> bool:
            scores = forests.scores(model.network, SPACE.encode(record)[0])
            return bool(oracle.decision(model.rule, scores))

        check(model, people(8), decide)


def check(model: Model, table: list[dict[str, Any]], decide: Any) -> None:  # noqa: ANN401 - a function
    """Compare findings and fair decisions with brute force."""
    auditor = Auditor(model)
    rows = SPACE.encode(table)
    for finding, row, record in zip(auditor.audit(rows), rows, table, strict=True):
        others = related(record)
        decisions = [decide(other) for other in others]
        assert finding.counterparts == len(others)
        assert finding.plausible is plausible(record)
        assert finding.decision == decide(record)
        if not others:
            assert finding.status == "undecided"
            assert finding.nobody
            with pytest.raises(feta.Undecided):
                FairPredictor(model).decide(row[None, :])
            continue
        fair = 2 * sum(decisions) >= len(decisions)
        assert FairPredictor(model).decide(row[None, :]).tolist() == [fair]
        if len(others) == 1:
            assert finding.status == "undecided"
        elif len(set(decisions)) > 1:
            assert finding.status == "unfair"
            assert finding.pair is not None
            for end in (finding.pair.person, finding.pair.counterpart):
                assert plausible(SPACE.decode(end))
        elif decide(record) == decisions[0]:
            assert finding.status == "fair"
        else:
            assert finding.status == "undecided"
            assert finding.own_differs
        if len(others) > 1:
            assert finding.fair_decision == fair


@pytest.mark.parametrize("seconds", [None, 60.0])
@pytest.mark.parametrize("kind", ["threshold", "classes", "tolerance"])
def test_every_rule_is_audited_within_a_budget(kind: str, seconds: float | None) -> None:
    relation = Constrained.of(SPACE, *CONDITIONS)
    budget = UNLIMITED if seconds is None else Budget(seconds=seconds)
    table = [r | {"income": income} for r in people(4) for income in (0, 30, 36, 38, 40)]
    rows, seen = SPACE.encode(table), set()
    for seed in range(6):
        network = random_network(np.random.default_rng(seed), SPACE, 3 if kind == "classes" else 1)
        score = float(network(rows)[7, 0])
        rules: dict[str, Rule] = {
            "threshold": Threshold(score),
            "classes": Argmax(("a", "b", "c")),
            "tolerance": Tolerance(2.0),
        }
        model = Model(SPACE, network, rules[kind], relation=relation)
        findings = Auditor(model, budget=budget).audit(rows)
        for finding, own, record in zip(findings, rows, table, strict=True):
            expected = expected_status(model, own, related(record))
            assert finding.status == expected
            seen.add((expected, finding.plausible))
    assert seen >= {("fair", True), ("fair", False), ("unfair", True), ("unfair", False)}
    assert ("undecided", False) in seen


def expected_status(model: Model, own: Vector, others: list[dict[str, Any]]) -> str:
    """Return the status by its definition."""
    rows = [SPACE.encode(other)[0] for other in others]
    if len(rows) < 2:
        return "undecided"
    if isinstance(model.rule, Tolerance):
        scores = [oracle.score(model, row) for row in rows]
        fair = max(scores) - min(scores) <= 2
        same = max(abs(score - oracle.score(model, own)) for score in scores) <= 2
    else:
        fair = len({oracle.decide(model, row) for row in rows}) == 1
        same = oracle.decide(model, own) == oracle.decide(model, rows[0])
    return "unfair" if not fair else "fair" if same else "undecided"


def test_somebody_alone_is_no_proof() -> None:
    """With an income of 38, only women of 29 are plausible; 40 leaves nobody."""
    relation = Constrained.of(SPACE, "2 * age - income >= 20", "sex == 'female' or age < 29")
    network = random_network(np.random.default_rng(1), SPACE)
    model = Model(SPACE, network, Threshold(1e9), relation=relation)
    record = {"age": 29, "sex": "female", "income": 38, "housing": "own"}
    query = feta.FairAt(model, SPACE.encode(record)[0])
    assert relation.count(query.person) == 1
    certificate = Certificate(query.digest, "other", LatticeProof(1))
    for check_it in (check_coverage, prove):
        with pytest.raises(feta.CertificateError, match="proves nothing: got a person without"):
            check_it(certificate, query)
    claimed = admit(query, feta.Fair(certificate), trusted=True)
    assert isinstance(claimed, feta.Unknown)
    assert claimed.reason is feta.Reason.NOBODY
    nobody = feta.verify(feta.FairAt(model, SPACE.encode(record | {"income": 40})[0]))
    assert isinstance(nobody, feta.Unknown)
    assert nobody.reason is feta.Reason.NO_COUNTERPART
