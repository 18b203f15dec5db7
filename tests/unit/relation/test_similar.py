"""Similar people: exact distances, questions about one person, and what does not exist."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import feta
from feta import Categorical, Derived, FeatureSpace, Integer, Levels, Real, SchemaError
from feta.api import share_unfair, verify_many
from feta.arrays import Vector
from feta.checker.admit import admit
from feta.checker.prove import prove
from feta.errors import EngineError
from feta.io.relation_section import build_relation, parse_relation, relation_lines
from feta.local_query import local_query
from feta.relation.similar import Similar

UP = float(np.nextafter(0.3, 1))
SPACE = FeatureSpace(
    (
        Integer("age", 20, 22, sensitive=True),
        Integer("years", 0, 10),
        Levels("rate", (0.0, 0.1, 0.2, 0.3, UP)),
        Real("income", -5.0, 5.0),
        Categorical("town", ("a", "b")),
        Derived("band", "years", (("few", 0, 4), ("many", 5, 10))),
        Integer("debts", 0, 3, missing=True),
    )
)


def person(**cells: object) -> Vector:
    record = {"age": 20, "years": 4, "rate": 0.1, "income": 1.0, "town": "a", "debts": None}
    return np.asarray(SPACE.encode([{**record, **cells}])[0])


@pytest.mark.parametrize(
    ("distances", "cells", "expected"),
    [
        ({"years": 2}, {"years": 6, "age": 22}, True),
        ({"years": 2}, {"years": 7}, False),
        ({"years": 2}, {"years": 6, "town": "b"}, False),
        ({"years": 2}, {"years": 6, "income": 1.5}, False),
        ({"rate": 0.2}, {"rate": 0.3}, True),  # float64 0.3 − 0.1 is below 0.2
        ({"rate": 0.2}, {"rate": UP}, False),
        ({"income": 0.1}, {"income": 1.1}, False),  # float64 1.1 is more than 0.1 above 1
        ({"income": 0.1}, {"income": float(np.nextafter(1.1, 0))}, True),
    ],
)
def test_distances_are_exact(
    distances: dict[str, float], cells: dict[str, object], expected: bool
) -> None:
    relation = Similar(distances).over(SPACE)
    first, second = person(), person(**cells)
    assert relation.related(first, second) is relation.related(second, first) is expected
    assert relation.related(first, first)
    local = relation.local(first)
    assert local.contains(second) is expected or not (local.sensitive and expected)
    moving = [a.name for a in local.sensitive]
    assert moving == [a.name for a in SPACE.attributes if a.name in {"age", *distances}]


def test_it_is_no_equivalence() -> None:
    relation = Similar({"years": 2}).over(SPACE)
    left, middle, right = (person(years=years) for years in (2, 4, 6))
    assert relation.related(left, middle)
    assert relation.related(middle, right)
    assert not relation.related(left, right)
    model = model_of({"years": 2})
    with pytest.raises(
        SchemaError, match=r"no fair decision exists.*expected a relation with a key"
    ):
        feta.FairPredictor(model)
    audit = feta.audit(model, [SPACE.decode(row) for row in (left, middle, right)])
    expected = [type(feta.worst(model, row)).__name__ for row in (left, middle, right)]
    assert [type(finding.verdict).__name__ for finding in audit.findings] == expected
    assert {finding.fair_decision for finding in audit.findings} == {None}
    with pytest.raises(SchemaError, match="no certificate for the relation Similar"):
        feta.audit(model, [SPACE.decode(left)], certify=True)
    regression = replace(model, rule=feta.Tolerance(1.0), outcomes=(), threshold=None)
    with pytest.raises(SchemaError, match="a regression is not audited with this relation"):
        feta.audit(regression, [SPACE.decode(left)])
    weights = feta.VoteWeights.from_people(SPACE, left[None, :])
    with pytest.raises(SchemaError, match="votes are for fair decisions, and the relation Similar"):
        feta.audit(model, [SPACE.decode(left)], weights=weights)
    with pytest.raises(EngineError, match="counterparts of counterparts may be none"):
        feta.tally(model, left[None, :])


def model_of(distances: dict[str, float], rule: feta.Threshold | None = None) -> feta.Model:
    """Approve from 5 years on."""
    slopes = [[0.0, 1.0, 0.0, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]]
    network = feta.Network.from_layers([(slopes, [-5.5])])
    return feta.Model(SPACE, network, rule or feta.Threshold(0.0), relation=Similar(distances))


@pytest.mark.parametrize("engine", ["auto", "exhaustive", "milp"])
def test_questions_about_one_person(engine: str) -> None:
    model = model_of({"years": 2})
    query = feta.WorstAt(model, person(years=4))
    verdict = feta.verify(query, engine=engine)
    assert isinstance(verdict, feta.Unfair)
    pair = verdict.counterexample
    assert (pair.person == query.person).all()
    assert pair.counterpart[1] == 6
    assert pair.fingerprint == model.fingerprint
    assert SPACE.decode(pair.counterpart)["band"] == "many"  # bands follow their column
    prove(verdict, query)
    fair = feta.FairAt(model, person(years=2))
    answer = feta.verify(fair, engine=engine)
    assert isinstance(answer, feta.Fair)
    prove(answer, fair)
    assert admit(fair, answer, trusted=True) == answer
    with pytest.raises(feta.CertificateError, match="belongs to another query"):
        prove(answer, feta.FairAt(model, person(years=1)))


def test_a_share_over_a_table() -> None:
    model = model_of({"years": 2})
    people = np.stack([person(years=years) for years in range(11)])
    progress: list[float] = []
    counts = share_unfair(model, people, progress=progress.append)
    assert (counts.fair, counts.unfair, counts.undecided) == (7, 4, 0)  # 3 to 6
    assert counts.share == 4 / 11
    assert progress[-1] == 1.0
    verdicts = verify_many([feta.FairAt(model, one) for one in people])
    assert sum(isinstance(verdict, feta.Unfair) for verdict in verdicts) == 4
    assert share_unfair(model, people[:0]).share == 0.0


def test_two_real_numbers_need_bounds() -> None:
    space = FeatureSpace(
        (Categorical("sex", ("f", "m"), sensitive=True), Real("a", 0, 9), Real("b", 0, 9))
    )
    network = feta.Network.from_layers([([[0.0, 0.0, 1.0, 1.0]], [-8.0])])
    model = feta.Model(space, network, feta.Threshold(0.0), relation=Similar({"a": 0.5, "b": 0.25}))
    near, far = space.encode([{"sex": "f", "a": a, "b": 4} for a in (3.5, 3.0)])
    assert isinstance(feta.verify(feta.FairAt(model, near)), feta.Unfair)
    assert isinstance(feta.verify(feta.FairAt(model, far)), feta.Fair)


def test_regression_is_refused() -> None:
    model = feta.Model(SPACE, model_of({"years": 2}).network, feta.Tolerance(0.5),
                       relation=Similar({"years": 2}))  # fmt: skip
    with pytest.raises(EngineError, match="similar people are not compared by a tolerance"):
        local_query(feta.FairAt(model, person()))


@pytest.mark.parametrize(
    ("section", "problem"),
    [
        (3, r"\[similar\] is not a table"),
        ({}, "no distances"),
        ({"years": 0}, "invalid distance for 'years': got 0"),
        ({"years": "2"}, "invalid distance for 'years': got '2'"),
        ({"years": True}, "invalid distance"),
        ({"years": float("inf")}, "invalid distance"),
        ({"years": 2**53 + 1}, "invalid distance"),
        ({"town": 1}, "needs a column with numbers: got 'town'"),
        ({"yeers": 1}, "did you mean 'years'"),
        ({"debts": 1}, "without missing values: got 'debts'"),
        ({"age": 1}, "a distance for a sensitive column: got 'age'"),
    ],
)
def test_bad_sections_are_explained(section: object, problem: str) -> None:
    with pytest.raises(SchemaError, match=problem):
        parse_relation({"similar": section}, SPACE)


def test_it_is_written_and_read_again(tmp_path: Path) -> None:
    model = model_of({"years": 2, "income": 0.5})
    feta.save_model(model, tmp_path / "model.feta")
    assert feta.load_model(tmp_path / "model.feta").fingerprint == model.fingerprint
    assert model.fingerprint != model_of({"years": 2}).fingerprint
    assert relation_lines(model.relation) == ["", "[similar]", "income = 0.5", "years = 2.0"]
    stored = model.relation.stored
    assert stored is not None
    assert build_relation(stored, SPACE).fingerprint == model.relation.fingerprint
    both = {"similar": {"years": 2}, "constraints": [{"condition": "age > 20"}]}
    with pytest.raises(SchemaError, match="got both; expected one relation"):
        parse_relation(both, SPACE)


def test_nothing_is_listed() -> None:
    relation, row = Similar({"years": 2}).over(SPACE), person()
    for call in (
        lambda: relation.size,
        lambda: relation.count(row),
        lambda: relation.assignment_ids(row),
        lambda: relation.counterpart(row, 0),
        lambda: relation.counterparts(row),
        lambda: relation.keys(row[None, :]),
    ):
        with pytest.raises(EngineError, match="the relation Similar has no key"):
            call()
