"""Constraints as entries of files: what they mean, and what is wrong with bad ones."""

from typing import Any

import numpy as np
import pytest

import feta
from feta import Categorical, FeatureSpace, Integer, Levels, Real, SchemaError
from feta.arrays import Matrix
from feta.engine import kernel_votes
from feta.io.relation_section import build_relation, parse_relation, relation_lines
from feta.io.schema_file import parse_schema
from feta.relation import listed_ids
from feta.relation.all_sensitive_values import AllSensitiveValues
from feta.relation.constrained import MAX_COMBINATIONS, Constrained, IfNone, violations
from feta.relation.constraints import read_constraints
from feta.relation.learning import learn_support, suggestions

SPACE = FeatureSpace(
    (
        Integer("age", 14, 90, sensitive=True),
        Categorical("marital", ("never", "married"), sensitive=True, missing=True),
        Integer("years", 0, 60, missing=True),
        Levels("rate", (0.1, 0.3)),
        Categorical("code", (1, 2)),
    )
)


def relation(*entries: dict[str, Any], if_none: IfNone = "refuse") -> Constrained:
    constraints = read_constraints(list(entries), SPACE.attributes)
    return Constrained(constraints, if_none).over(SPACE)


def admitted(entry: dict[str, Any], **cells: object) -> bool:
    record = {"age": 30, "marital": "never", "years": 2, "rate": 0.1, "code": 1, **cells}
    people = np.repeat(SPACE.encode(record), 3, axis=0)  # more than a few: no list is used
    several, one = relation(entry).admits(people), relation(entry).admits(people[:1])
    assert len({*several.tolist(), *one.tolist()}) == 1
    return bool(one[0])


def test_conditions_exclude_only_those_for_whom_they_are_false() -> None:
    working = {"condition": "age - years >= 14"}
    assert admitted(working, age=30, years=16)
    assert not admitted(working, age=30, years=17)
    assert admitted(working, age=30, years=None)
    young = {"condition": "age < 18 => marital == 'never'"}
    assert admitted(young, age=17, marital="never")
    assert not admitted(young, age=17, marital="married")
    assert admitted(young, age=17, marital=None)
    assert admitted(young, age=18, marital="married")


def test_forbidden_combinations_need_all_their_values() -> None:
    entry = {"forbidden": {"marital": "married", "age": [14, 17], "code": [1, 2]}}
    assert not admitted(entry, marital="married", age=17)
    assert admitted(entry, marital="married", age=18)
    assert admitted(entry, marital="never", age=17)


def test_support_is_a_list_of_combinations_with_exact_bands() -> None:
    seen = [
        {"marital": "never", "rate": [0.1, 0.1], "age - years": [14, 20]},
        {"marital": ["never", "married"], "rate": 0.3, "age - years": [14, 90]},
    ]
    entry = {"support": ["marital", "rate", "age - years"], "least": 5, "seen": seen}
    assert admitted(entry, marital="never", rate=0.1, age=34, years=20)
    assert not admitted(entry, marital="never", rate=0.1, age=35, years=14)
    assert not admitted(entry, marital="married", rate=0.1, age=34, years=20)
    assert admitted(entry, marital="married", rate=0.3, age=74, years=0)


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ({"condition": "aeg >= 3"}, "entry 1: invalid condition 'aeg >= 3': at position 1"),
        ({"condition": 3}, "invalid condition: got 3; expected a text"),
        ({}, "got none of them; expected exactly one of condition, forbidden and support"),
        ({"condition": "age > 3", "forbidden": {}}, "got condition and forbidden"),
        ({"conditions": "age > 3"}, "unknown key: got 'conditions'.*did you mean 'condition'"),
        ({"condition": "age > 3", "least": 3}, "seen and least belong to support"),
        ({"forbidden": {}}, "invalid forbidden combination: got {}"),
        ({"forbidden": {"marital": "widow"}}, "unknown value of 'marital': got 'widow'"),
        ({"forbidden": {"code": "1"}}, "unknown value of 'code': got '1'"),
        ({"forbidden": {"code": True}}, "unknown value of 'code': got True"),
        ({"forbidden": {"code": []}}, "got an empty list"),
        ({"forbidden": {"age": "20"}}, "invalid value of 'age': got '20'"),
        ({"forbidden": {"age": [1, 2, 3]}}, r"got \[1, 2, 3\]; expected a number, or a band"),
        ({"forbidden": {"age": [30, 20]}}, "invalid band of 'age'"),
        ({"forbidden": {"age": [True, 20]}}, "invalid value of 'age'"),
        ({"forbidden": {"age": float("inf")}}, "invalid value of 'age'"),
        ({"forbidden": {"wage": 3}}, "unknown column: got 'wage'.*did you mean 'age'"),
        ({"support": ["age"]}, "invalid seen: got None"),
        ({"support": "age", "seen": []}, "invalid support: got 'age'"),
        ({"support": ["age"], "seen": [{"years": 3}]}, r"expected values of exactly \['age'\]"),
    ],
)
def test_bad_entries_are_explained(entry: dict[str, Any], problem: str) -> None:
    with pytest.raises(SchemaError, match=problem):
        read_constraints([entry], SPACE.attributes)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ({"constraints": 3}, "is not a list of tables"),
        ({"constraints": []}, "is empty"),
        ({"consequences": {}}, r"\[consequences\]: no equations"),
        ({"relation": {"if_none": "all"}}, r"if_none needs \[\[constraints\]\]"),
        ({"relation": 3}, r"\[relation\] is not a table"),
        ({"relation": {"ifnone": "all"}}, "unknown key: got 'ifnone'"),
        (
            {"relation": {"if_none": "some"}, "constraints": [{"condition": "age > 20"}]},
            "invalid if_none: got 'some'",
        ),
        ({"constraints": [{"condition": "years > 20"}]}, "reads no sensitive column"),
        (
            {"constraints": [{"condition": "age > 40"}, {"condition": "age < 30"}]},
            "contradictory constraints: no combination.*age > 40; age < 30",
        ),
    ],
)
def test_sections_that_mean_nothing_are_refused(content: dict[str, Any], problem: str) -> None:
    with pytest.raises(SchemaError, match=problem):
        parse_relation(content, SPACE)


def test_relations_are_written_and_read_again() -> None:
    entries: list[dict[str, Any]] = [
        {"condition": "age - years >= 14"},
        {"forbidden": {"marital": "married", "age": [14, 17]}},
        {"support": ["marital", "age"], "least": 3, "seen": [{"marital": "never", "age": 20}]},
    ]
    before = relation(*entries, if_none="all")
    lines = [
        "[columns]",
        'age = { type = "integer", min = 14, max = 90, sensitive = true }',
        'marital = { type = "category", values = ["never", "married"], sensitive = true }',
        'years = { type = "integer", min = 0, max = 60 }',
        *relation_lines(before),
    ]
    after = parse_schema("\n".join(lines)).relation
    assert after is not None
    assert after.fingerprint == before.fingerprint
    stored = before.stored
    assert build_relation(stored, SPACE).fingerprint == before.fingerprint
    assert relation_lines(None) == relation_lines(AllSensitiveValues(SPACE)) == []
    assert isinstance(build_relation({}, SPACE), AllSensitiveValues)
    with pytest.raises(SchemaError, match="unknown relation in the file: got 'other'"):
        build_relation({"kind": "other"}, SPACE)


def test_the_order_and_the_words_of_constraints_do_not_matter() -> None:
    one, two = {"condition": "age > 20"}, {"forbidden": {"marital": "married", "code": 1}}
    assert relation(one, two).fingerprint == relation(two, {"condition": "20 < age"}).fingerprint
    assert relation(one, two).fingerprint != relation(one).fingerprint
    assert relation(one).fingerprint != relation(one, if_none="all").fingerprint


def test_people_without_a_plausible_combination() -> None:
    entry = {"condition": "age - years >= 14"}
    person = SPACE.encode({"age": 90, "marital": "never", "years": 60, "rate": 0.1, "code": 1})[0]
    assert relation(entry).count(person) == (90 - 74 + 1) * 3
    strict = {"condition": "age - years >= 60"}
    assert relation(strict).count(person) == 0
    assert list(relation(strict).counterparts(person)) == []
    everybody = relation(strict, if_none="all")
    assert everybody.count(person) == 77 * 3
    assert everybody.admits(np.stack([person] * 4)).all()


def test_models_that_constraints_cannot_describe_are_refused() -> None:
    constraints = read_constraints([{"condition": "age > 20"}], SPACE.attributes)
    real = FeatureSpace((Real("age", 14, 90, sensitive=True),))
    with pytest.raises(SchemaError, match="need finitely many sensitive values: got 'age'"):
        Constrained(constraints).over(real)
    large = FeatureSpace((Integer("age", 0, MAX_COMBINATIONS, sensitive=True),))
    with pytest.raises(SchemaError, match="too many combinations"):
        Constrained(constraints).over(large)
    other = FeatureSpace((Integer("years", 0, 3, sensitive=True),))
    with pytest.raises(SchemaError, match="unknown column in a constraint: got 'age'"):
        Constrained(constraints).over(other)
    with pytest.raises(SchemaError, match="no constraints"):
        Constrained(())
    with pytest.raises(SchemaError, match="invalid if_none"):
        Constrained(constraints, "some")  # type: ignore[arg-type]


def people(n: int = 400) -> Matrix:
    """People who started to work at 14 or later; nobody below 18 is married."""
    rng = np.random.default_rng(3)
    records = []
    for _ in range(n):
        age = int(rng.integers(14, 91))
        married = age >= 18 and rng.random() < 0.6
        records.append(
            {
                "age": age,
                "marital": "married" if married else "never",
                "years": int(rng.integers(0, min(60, age - 14) + 1)),
                "rate": 0.3 if rng.random() < 0.5 else 0.1,
                "code": 1 if married else 2,
            }
        )
    return SPACE.encode(records)


def test_learned_support_admits_the_people_it_is_learned_from() -> None:
    rows = people()
    entry = learn_support(SPACE, rows, ["marital", "age", "age - years", "rate"], 5)
    assert len(entry["seen"]) == 2
    assert all(row["age - years"][0] >= 14 for row in entry["seen"])
    learned = relation(entry)
    assert learned.admits(rows).all()
    assert violations(learned, rows)[0][1] == 0
    ages = [row["age"] for row in entry["seen"] if row["marital"] == "married"]
    assert ages[0][0] == rows[rows[:, 2] == 1][:, 0].min()


def test_rare_combinations_are_not_learned() -> None:
    odd = {"age": 50, "marital": "married", "years": 3, "rate": 0.1, "code": 2}
    rows = np.concatenate([people(50), np.repeat(SPACE.encode(odd), 3, axis=0)])
    for least, expected in ((3, 53), (4, 50)):
        entry = learn_support(SPACE, rows, ["marital", "code"], least)
        assert relation(entry).admits(rows).sum() == expected
    for columns, least, problem in (
        (["marital"], 0, "invalid least"),
        (["marital"], 54, "no combination of marital occurs 54 times"),
        ([], 1, "invalid columns"),
        (["age", "age"], 1, "expected different columns"),
        (["aeg"], 1, "did you mean 'age'"),
    ):
        with pytest.raises(SchemaError, match=problem):
            learn_support(SPACE, rows, columns, least)


def test_suggestions_are_not_violated_by_the_table() -> None:
    rows = people(1500)
    entries = suggestions(SPACE, rows)
    assert {"condition": "age - years >= 14"} in entries
    assert {"forbidden": {"marital": "married", "code": 2}} in entries
    assert all(count == 0 for _, count in violations(relation(*entries), rows))
    assert violations(AllSensitiveValues(SPACE), rows) == []


def test_caches_that_overflow_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = people(60)
    network = feta.Network.from_layers([(np.linspace(-1, 1, SPACE.width)[None, :], [-20.0])])
    found = []
    for limit in (None, 1):
        if limit is not None:
            monkeypatch.setattr(listed_ids, "MAX_CACHED", limit)
            monkeypatch.setattr(kernel_votes, "MAX_CACHED", limit)
        chosen = relation({"condition": "age - years >= 14"})
        model = feta.Model(SPACE, network, threshold=0.0, relation=chosen)
        voters = [feta.FairPredictor(model), feta.FairPredictor(model, vote="mean_score")]
        decisions = [voter.decide(rows).tolist() for voter in voters for _ in range(2)]
        found.append((decisions, [chosen.count(row) for row in rows], feta.tally(model, rows)))
    assert found[0][:2] == found[1][:2]
    assert (found[0][2].by_class == found[1][2].by_class).all()
    assert found[0][1] == [(90 - max(14, 14 + years) + 1) * 3 for years in rows[:, 4].astype(int)]
