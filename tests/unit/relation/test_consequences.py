"""Structural causal models: what they mean, and what is wrong with bad ones."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import feta
from feta import (
    Categorical,
    Consequences,
    DomainError,
    FeatureSpace,
    Integer,
    Levels,
    Real,
    SchemaError,
)
from feta.arrays import Vector
from feta.errors import EngineError
from feta.io.relation_section import build_relation, parse_relation, relation_lines
from feta.io.schema_file import parse_schema
from feta.relation import consequences
from feta.relation.consequences import Outside
from feta.space.attribute import Derived
from feta.wider_limits import model_for

SEX = Categorical("sex", ("female", "male"), sensitive=True)
AGE = Integer("age", 20, 29, sensitive=True)
SPACE = FeatureSpace(
    (
        SEX,
        AGE,
        Levels.spaced("gpa", 0, 4, step=0.1),
        Integer("income", 0, 100, missing=True),
        Categorical("job", ("clerk", "nurse", "boss"), missing=True),
        Real("debt", -10, 10),
        Derived("rich", "age", (("no", 20, 24), ("yes", 25, 29))),
    )
)
PERSON: dict[str, object] = {
    "sex": "female", "age": 22, "gpa": 3.0, "income": 50, "job": "nurse", "debt": 0.5,
}  # fmt: skip
BANDS = [
    {"when": {"sex": "female"}, "map": {"low": ["clerk", "nurse"], "high": "boss"}},
    {"when": {"sex": "male"}, "map": {"low": "clerk", "high": ["nurse", "boss"]}},
]
QUANTILES = [
    {"when": {"sex": "female"}, "shares": {"clerk": 0.5, "nurse": 0.25, "boss": 0.25}},
    {"when": {"sex": "male"}, "shares": {"clerk": 0.8, "nurse": 0.1, "boss": 0.1}},
]


def person(space: FeatureSpace = SPACE, **cells: object) -> Vector:
    return space.encode({**PERSON, **cells})[0]


def listed(relation: Consequences, row: Vector, *names: str) -> list[Any]:
    """Return the values of some columns of all counterparts."""
    assert relation.space is not None
    records = [relation.space.decode(one) for block in relation.counterparts(row) for one in block]
    return [tuple(record[name] for name in names) for record in records]


def test_descendants_move_with_the_persons_own_noise() -> None:
    relation = Consequences.of(
        SPACE,
        {"column": "gpa", "shifts": {"sex": {"male": -0.2}}},
        {"column": "income", "slopes": {"age": 2, "gpa": 10}},
    )
    rows = listed(relation, person(), "sex", "age", "gpa", "income")
    assert ("female", 22, 3.0, 50) in rows  # the person
    assert ("male", 22, 2.8, 48) in rows
    assert ("male", 29, 2.8, 62) in rows
    assert len(rows) == 20


def test_effects_are_rounded_once_to_the_step_half_to_even() -> None:
    relation = Consequences.of(SPACE, {"column": "income", "slopes": {"age": 0.5}})
    by_age = dict(listed(relation, person(age=20, income=10), "age", "income"))
    # 10, 10.5, 11, 11.5, 12, … are rounded to 10, 10, 11, 12, 12, …
    assert [by_age[age] for age in range(20, 25)] == [10, 10, 11, 12, 12]


def test_a_table_of_effects_reads_several_columns() -> None:
    rows = [["male", 22, 7.0], ["female", 25, -7]]
    relation = Consequences.of(
        SPACE, {"column": "income", "tables": [{"columns": ["sex", "age"], "rows": rows}]}
    )
    found = {
        (sex, age): income for sex, age, income in listed(
            relation, person(), "sex", "age", "income"
        )
    }  # fmt: skip
    assert found[("male", 22)] == 57
    assert found[("female", 25)] == 43
    assert found[("male", 25)] == 50


def test_a_counterpart_outside_the_domain_does_not_exist() -> None:
    relation = Consequences.of(SPACE, {"column": "income", "shifts": {"sex": {"male": 60}}})
    assert relation.count(person(income=40)) == 20
    assert relation.count(person(income=41)) == 10
    assert relation.related(person(income=40), person(sex="male", income=100))
    assert not relation.related(person(income=41), person(sex="male", income=100))


def test_a_missing_value_stays_missing_and_has_no_effect() -> None:
    relation = Consequences.of(
        SPACE,
        {"column": "income", "shifts": {"sex": {"male": 5}}},
        {"column": "gpa", "slopes": {"income": 0.1}},
    )
    rows = listed(relation, person(income=None), "sex", "income", "gpa")
    assert set(rows) == {("female", None, 3.0), ("male", None, 3.0)}


def test_people_of_one_band_are_counterparts() -> None:
    relation = Consequences.of(SPACE, {"column": "job", "bands": BANDS})
    jobs = {(sex, job) for sex, job in listed(relation, person(), "sex", "job")}
    assert jobs == {("female", "clerk"), ("female", "nurse"), ("male", "clerk")}
    missing = listed(relation, person(job=None), "sex", "job")
    assert set(missing) == {("female", None), ("male", None)}


def test_a_quantile_map_has_no_key() -> None:
    relation = Consequences.of(SPACE, {"column": "job", "quantiles": QUANTILES})
    # Female nurses end at 0.75, which male clerks reach.
    assert set(listed(relation, person(), "sex", "job")) == {
        ("female", "nurse"), ("male", "clerk"),
    }  # fmt: skip
    assert not relation.has_key
    assert relation.related(person(), person(sex="male", job="clerk"))
    assert not relation.related(person(sex="male", job="clerk"), person())
    with pytest.raises(EngineError, match="has no key: with clip or a quantile map"):
        relation.keys(person()[None, :])


def test_a_quantile_map_by_a_column_that_is_shared_moves_nobody() -> None:
    """An audit asks about one sensitive column at a time; the others are shared then."""
    relation = Consequences.of(SPACE, {"column": "job", "quantiles": QUANTILES})
    only_age = relation.over(SPACE.with_sensitive(["age"]))
    rows = listed(only_age, person(), "sex", "age", "job")
    assert rows == [("female", age, "nurse") for age in range(20, 30)]


def test_clipped_values_have_no_key_and_no_fair_decision() -> None:
    relation = Consequences.of(
        SPACE, {"column": "income", "shifts": {"sex": {"male": 60}}}, outside="clip"
    )
    assert ("male", 100) in listed(relation, person(income=90), "sex", "income")
    model = feta.Model(SPACE, network(), threshold=0.0, relation=relation)
    with pytest.raises(SchemaError, match=r"^no fair decision exists: .* several values become"):
        feta.FairPredictor(model)
    regression = feta.Model(SPACE, network(), feta.Tolerance(1.0), relation=relation)
    with pytest.raises(EngineError, match=r"^similar people .* the relation Consequences"):
        feta.verify(feta.FairAt(regression, person()))


def network() -> feta.Network:
    weights = np.zeros((1, SPACE.width))
    weights[0, SPACE.columns_of(SPACE.attribute("income")).start] = 1.0
    return feta.Network.from_layers([(weights, [-50.0])])


def test_fair_decisions_need_the_sensitive_columns() -> None:
    relation = Consequences.of(SPACE, {"column": "income", "shifts": {"sex": {"male": 10}}})
    model = feta.Model(SPACE, network(), threshold=0.0, relation=relation)
    predictor = feta.FairPredictor(model)
    assert predictor.sensitive == "check"
    hidden = SPACE.encode(PERSON, sensitive="ignore")
    with pytest.raises(DomainError, match="'sex' is invalid: got"):
        predictor.decide(hidden)
    with pytest.raises(DomainError, match="the noise cannot be recovered: got rows without"):
        relation.keys(hidden)
    # 45 and 55: both sexes get the decision of their noise.
    people = np.array([person(income=45), person(sex="male", income=55)])
    assert len(set(predictor.decide(people).tolist())) == 1


def test_limits_of_descendants_and_parents_are_strict() -> None:
    relation = Consequences.of(
        SPACE, {"column": "income", "shifts": {"sex": {"male": 1}}, "slopes": {"debt": 1}}
    )
    model = feta.Model(SPACE, network(), threshold=0.0, relation=relation)
    outside = np.array(person())
    outside[SPACE.columns_of(SPACE.attribute("income")).start] = 101
    with pytest.raises(DomainError, match="because the limits of a descendant say which"):
        model_for(model, outside)
    outside = np.array(person())
    outside[SPACE.columns_of(SPACE.attribute("debt")).start] = 11
    with pytest.raises(DomainError, match=r"because an equation of .consequences. reads"):
        model_for(model, outside)


def test_a_pair_says_what_moved_and_why() -> None:
    relation = Consequences.of(SPACE, {"column": "income", "shifts": {"sex": {"male": 10}}})
    other = relation.moved(person(), np.array([10]))[0]
    assert relation.reasons(person(), other) == (
        "income moved from 50 to 60, because it follows from sex with the same noise",
    )
    assert relation.reasons(person(), person()) == ()
    stranger = relation.moved(person(income=95), np.array([10]))[0]
    assert (stranger == person(income=95)).all()  # no counterpart: it proves nothing


def test_bands_of_a_column_move_with_it() -> None:
    attributes = (*SPACE.attributes[:3], Derived("honors", "gpa", (("no", 0, 3), ("yes", 3.1, 4))))
    space = FeatureSpace(attributes)
    relation = Consequences.of(space, {"column": "gpa", "shifts": {"sex": {"male": 0.1}}})
    cells = {"sex": "female", "age": 22, "gpa": 3.0}
    rows = listed(relation, space.encode(cells)[0], "sex", "gpa", "honors")
    assert ("male", 3.1, "yes") in rows
    assert ("female", 3.0, "no") in rows


def test_long_columns_are_read_as_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = (
        {"column": "income", "slopes": {"age": 0.7}},
        {"column": "gpa", "slopes": {"income": 0.03}},
    )
    expected = listed(Consequences.of(SPACE, *entries), person(), "age", "gpa", "income")
    absent = listed(Consequences.of(SPACE, *entries), person(income=None), "age", "gpa")
    monkeypatch.setattr("feta.relation.effects.MAX_TABLE", 5)
    assert listed(Consequences.of(SPACE, *entries), person(), "age", "gpa", "income") == expected
    again = listed(Consequences.of(SPACE, *entries), person(income=None), "age", "gpa")
    assert again == absent


def test_lists_of_counterparts_are_cached_and_cleared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consequences, "MAX_CACHED", 0)
    relation = Consequences.of(SPACE, {"column": "income", "shifts": {"sex": {"male": 10}}})
    rows = [person(income=income) for income in (10, 95, 10, 95)]
    assert [relation.count(row) for row in rows] == [20, 10, 20, 10]
    ids = relation.assignment_ids(rows[0])
    assert relation.assignment_ids(person(income=11)) is ids  # engines group by identity


def shifts(**cells: object) -> dict[str, Any]:
    return {"column": "income", "shifts": {"sex": {"male": 1}}, **cells}


@pytest.mark.parametrize(
    ("entries", "problem"),
    [
        ([], "no equations: expected one or more"),
        ([{"column": "incme", "shifts": {}}], "unknown column .*did you mean 'income'"),
        ([{"column": "rich", "shifts": {}}], "unknown column in an equation"),
        ([{"column": "income"}], "got no effect; expected shifts, slopes and tables"),
        ([{"column": "income", "shifts": {}}], "got no effect; expected one or more; remove it"),
        ([shifts(slope={})], "unknown key: got 'slope'.*did you mean 'slopes'"),
        ([shifts(bands=BANDS)], "got shifts and bands; expected"),
        ([shifts(), shifts()], "two equations for 'income'"),
        ([shifts(shifts=3)], "shifts is not a table: got 3"),
        ([shifts(shifts={"sx": {}})], "unknown column .*did you mean 'sex'"),
        ([shifts(shifts={"age": {}})], "shifts need a category: got 'age'"),
        ([shifts(shifts={"sex": {"man": 1}})], "unknown value of 'sex': got 'man'"),
        ([shifts(shifts={"sex": {"male": "1"}})], "invalid effect: got '1'; expected a finite"),
        ([shifts(shifts={"sex": {"male": np.inf}})], "invalid effect: got inf"),
        ([shifts(slopes={"sex": 1})], "slopes need a number: got 'sex', a category"),
        ([shifts(slopes={"age": 1e300})], "too large an effect"),
        ([shifts(tables=3)], "tables is not a list"),
        ([shifts(tables=[{"columns": ["sex"]}])], "invalid table: got .*expected columns and rows"),
        ([shifts(tables=[{"columns": ["sex"], "rows": []}])], "expected lists with one entry"),
        ([shifts(tables=[{"columns": ["sex"], "rows": [["male"]]}])], "invalid row"),
        (
            [shifts(tables=[{"columns": ["sex"], "rows": [["male", 1], ["male", 2]]}])],
            "repeated row",
        ),
        ([shifts(tables=[{"columns": ["sex"], "rows": [["man", 1]]}])], "unknown value of 'sex'"),
        ([shifts(tables=[{"columns": ["age"], "rows": [[3, 1]]}])], "invalid value of 'age'"),
        ([shifts(tables=[{"columns": ["age"], "rows": [["3", 1]]}])], "invalid value of 'age'"),
        ([shifts(tables=[{"columns": ["debt"], "rows": [[3, 1]]}])], "tables need finitely many"),
        ([shifts(tables=[{"columns": ["sex", "sex"], "rows": [[1]]}])], "expected each once"),
        ([{"column": "debt", "slopes": {"age": 1}}], "the noise of 'debt' cannot be recovered"),
        (
            [{"column": "job", "slopes": {"age": 1}}],
            "need a number: got a category; expected bands",
        ),
        ([{"column": "age", "shifts": {"sex": {"male": 1}}}], "of a sensitive column: got 'age'"),
        ([{"column": "income", "slopes": {"gpa": 1}}], "reads no sensitive column and no desc"),
        (
            [
                shifts(slopes={"gpa": 1}),
                {"column": "gpa", "slopes": {"income": 1}, "shifts": {"sex": {"male": 1}}},
            ],
            "form a cycle: got (income -> gpa -> income|gpa -> income -> gpa); expected causes",
        ),
        ([{"column": "income", "bands": BANDS}], "bands need a category: got a number"),
        ([{"column": "job", "bands": []}], "bands is not a list of groups"),
        ([{"column": "job", "bands": [{"when": {"sex": "male"}}]}], "invalid group of bands"),
        (
            [{"column": "job", "quantiles": [{"when": {"sex": "male"}}]}],
            "invalid group of quantiles",
        ),
        ([{"column": "job", "bands": [{"when": {}, "map": {}}]}], "invalid when in bands"),
        ([{"column": "job", "bands": BANDS[:1]}], "got 0 groups for sex = male; expected every"),
        ([{"column": "job", "bands": [*BANDS, BANDS[0]]}], "got 2 groups for sex = female"),
        (
            [{"column": "job", "bands": [{**BANDS[0], "map": {"low": "clerk"}}, BANDS[1]]}],
            "the noise of 'job' cannot be recovered: got 'nurse' in no band where sex is female",
        ),
        (
            [
                {
                    "column": "job",
                    "bands": [
                        {**BANDS[0], "map": {"a": ["clerk", "nurse", "boss"], "b": "boss"}},
                        BANDS[1],
                    ],
                }
            ],
            "got a value in several bands",
        ),
        (
            [{"column": "job", "bands": [{**BANDS[0], "map": {"a": "clark"}}, BANDS[1]]}],
            "unknown value of 'job': got 'clark'.*did you mean 'clerk'",
        ),
        (
            [{"column": "job", "bands": [{**BANDS[0], "when": {"sex": "man"}}, BANDS[1]]}],
            "unknown value of 'sex': got 'man'",
        ),
        (
            [{"column": "job", "bands": [{**BANDS[0], "when": {"debt": 1}}, BANDS[1]]}],
            "groups are defined by sensitive columns|reads no sensitive column",
        ),
        (
            [{"column": "job", "quantiles": [{**QUANTILES[0], "shares": {"clerk": 1}}]}],
            "invalid shares of 'job' where sex is female",
        ),
        (
            [{"column": "job", "quantiles": [{**QUANTILES[0], "shares": {"clark": 1}}]}],
            "unknown value of 'job': got 'clark'",
        ),
        (
            [{"column": "job", "quantiles": [{**QUANTILES[0], "shares": {"clerk": 2}}]}],
            "invalid share of 'clerk': got 2",
        ),
    ],
)
def test_bad_equations_are_refused(entries: list[dict[str, Any]], problem: str) -> None:
    with pytest.raises(SchemaError, match=problem):
        parse_relation({"consequences": {"equations": entries}}, SPACE)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ({"consequences": 3}, r"\[consequences\] is not a table: got 3"),
        ({"consequences": {"equations": 3}}, "equations is not a list of tables: got 3"),
        ({"consequences": {"equation": []}}, "unknown key: got 'equation'.*did you mean"),
        ({"consequences": {"outside": "cut", "equations": []}}, "invalid outside: got 'cut'"),
        ({"consequences": {}, "similar": {}}, r"\[consequences\] and similar: got both"),
        ({"consequences": {}, "constraints": []}, r"\[consequences\] and constraints: got both"),
    ],
)
def test_bad_sections_are_refused(content: dict[str, Any], problem: str) -> None:
    with pytest.raises(SchemaError, match=problem):
        parse_relation(content, SPACE)


def test_sensitive_columns_must_be_finite_and_few(monkeypatch: pytest.MonkeyPatch) -> None:
    real = FeatureSpace((Real("age", 0, 1, sensitive=True), Integer("income", 0, 9)))
    with pytest.raises(SchemaError, match="finitely many sensitive values: got 'age'"):
        Consequences.of(real, {"column": "income", "slopes": {"age": 1}})
    monkeypatch.setattr(consequences, "MAX_COUNTERPARTS", 10)
    with pytest.raises(SchemaError, match="too many counterparts for consequences: got 20"):
        Consequences.of(SPACE, shifts())


def test_large_tables_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("feta.relation.effects.MAX_TABLE", 15)
    entry = shifts(tables=[{"columns": ["sex", "age"], "rows": [["male", 22, 1]]}])
    with pytest.raises(SchemaError, match="too large a table of effects: got 20 combinations"):
        Consequences.of(SPACE, entry)


@pytest.mark.parametrize("outside", ["leave out", "clip"])
def test_equations_survive_schema_and_model_files(
    outside: Outside, write: Callable[[Consequences], str]
) -> None:
    relation = Consequences.of(
        SPACE,
        {
            "column": "income",
            "shifts": {"sex": {"male": 1.5}},
            "slopes": {"age": 0.25},
            "tables": [{"columns": ["sex", "age"], "rows": [["male", 22, 1]]}],
        },
        {"column": "job", "bands": BANDS},
        outside=outside,
    )
    again = parse_schema(write(relation)).relation
    assert again is not None
    assert again.over(SPACE).fingerprint == relation.fingerprint
    stored = build_relation(relation.stored, SPACE).over(SPACE)
    assert stored.fingerprint == relation.fingerprint


@pytest.fixture
def write() -> Callable[[Consequences], str]:
    columns = """
[columns]
sex = { type = "category", values = ["female", "male"], sensitive = true }
age = { type = "integer", min = 20, max = 29, sensitive = true }
gpa = { type = "number", min = 0, max = 4, step = 0.1 }
income = { type = "integer", min = 0, max = 100, missing = true }
job = { type = "category", values = ["clerk", "nurse", "boss"], missing = true }
debt = { type = "number", min = -10, max = 10 }
"""
    head = '[decision]\nfavorable = "yes"\nunfavorable = "no"\nscore = 0.0\n'
    return lambda relation: head + columns + "\n".join(relation_lines(relation)) + "\n"


@pytest.mark.parametrize("engine", ["auto", "lattice", "exhaustive"])
@pytest.mark.parametrize("value", [50.0, np.nextafter(50.0, 99.0), np.nextafter(50.0, 0.0)])
def test_counterparts_next_to_the_threshold_move_along(engine: str, value: float) -> None:
    """They are decided in exact arithmetic, with their descendants."""
    space = FeatureSpace((SEX, Integer("income", 0, 100)))
    relation = Consequences.of(space, {"column": "income", "shifts": {"sex": {"male": 30}}})
    income = [([[0.0, 0.0, 1.0]], [0.0]), ([[1.0]], [0.0])]
    model = feta.Model(space, feta.Network.from_layers(income), threshold=value, relation=relation)
    people = [{"sex": "female", "income": 20}, {"sex": "male", "income": 50}]
    # Both are one class: the man of 50 is approved unless the threshold is above it.
    fair = value > 50.0
    findings = feta.audit(model, people, engine=engine).findings
    assert [isinstance(one.verdict, feta.Fair) for one in findings] == [fair, fair]
    assert [isinstance(one.verdict, feta.Unfair) for one in findings] == [not fair, not fair]
    predictor = feta.FairPredictor(model, engine=engine)
    assert predictor.votes(space.encode(people)).by_class.tolist() == [[1 + fair, 1 - fair]] * 2
    assert predictor.decide(space.encode(people)).tolist() == [not fair, not fair]
