"""Columns of records equal the records of the people one by one."""

from dataclasses import replace

import numpy as np
import pytest

import feta
from feta.api import verify_counted, verify_many
from feta.auditing.record import record_columns, record_of
from feta.engine.lattice import LatticeEngine
from feta.engine.protocol import UNLIMITED, Budget
from feta.model import Model
from feta.query import WorstAt
from feta.scorer.native import native
from feta.verdict.verdict import Fair, Unfair
from tests.unit.scorer.forest.test_forest import SPACE, people

BANDS = feta.Derived("band", "age", (("young", 18, 20), ("old", 21, 30)))
WITH_BANDS = feta.FeatureSpace(
    (
        feta.Integer("age", 18, 30, sensitive=True),
        BANDS,
        feta.Categorical("town", ("a", "b"), other=True),
    )
)


def test_columns_are_those_of_the_records() -> None:
    others = WITH_BANDS.encode([{"age": 19, "town": "a"}, {"age": 25, "town": "z"}])
    for space, rows in ((SPACE, people(np.random.default_rng(0), 60)), (WITH_BANDS, others)):
        for attributes in (space.attributes, space.sensitive):
            columns = record_columns(space, rows, attributes)
            records = [record_of(space, row, attributes) for row in rows]
            found = [
                dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)
            ]
            assert found == records
            kinds = [[type(value) for value in record.values()] for record in records]
            assert [[type(value) for value in record.values()] for record in found] == kinds


AGES = feta.FeatureSpace((feta.Integer("age", 18, 90, sensitive=True), feta.Real("income", 0, 99)))
MODEL = Model(AGES, feta.Network.from_layers([([[0.1, 1.0]], [-9.0])]))


@pytest.mark.skipif(native is None, reason="the kernel was not built")
def test_counts_come_with_the_answers_of_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = AGES.encode([{"age": 20 + n, "income": n % 23} for n in range(40)])
    queries = WorstAt.each(MODEL, rows)
    verdicts, counts = verify_counted(queries)
    assert {type(verdict) for verdict in verdicts} == {Fair, Unfair}
    assert [type(verdict) for verdict in verify_many(queries)] == [type(v) for v in verdicts]
    expected = feta.tally(MODEL, rows)
    assert counts is not None
    assert counts.by_class.tolist() == expected.by_class.tolist()
    assert counts.runtime_safe.tolist() == expected.runtime_safe.tolist()
    # A limited search, another engine, or one of another package counts nothing for others.
    assert verify_counted(queries, budget=Budget(seconds=60))[1] is None
    assert verify_counted(queries, engine="exhaustive")[1] is None
    monkeypatch.setattr("feta.api.is_ours", lambda _: False)
    assert verify_counted(queries)[1] is None


@pytest.mark.skipif(native is None, reason="the kernel was not built")
def test_the_checker_sees_the_answers_of_a_counted_block(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = AGES.encode([{"age": 20, "income": 20}])
    (query,) = WorstAt.each(MODEL, rows)
    solve = LatticeEngine.solve_counted

    def forged(engine: LatticeEngine, queries: list[WorstAt], budget: Budget) -> object:
        verdicts, counts = solve(engine, queries, budget)
        (verdict,) = verdicts
        assert isinstance(verdict, Fair)
        wrong = replace(verdict.certificate, query_digest="of another person")
        return [replace(verdict, certificate=wrong)], counts

    monkeypatch.setattr(LatticeEngine, "solve_counted", forged)
    with pytest.raises(feta.errors.CertificateError, match="belongs to another query"):
        verify_counted([query], budget=UNLIMITED)
