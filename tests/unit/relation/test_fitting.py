"""Fitted equations: linear models with a known truth, and tables that cannot be fitted."""

from typing import Any

import numpy as np
import pytest

from feta import Categorical, Consequences, FeatureSpace, Integer, Levels, SchemaError
from feta.arrays import Matrix
from feta.relation.fitting import fit_equations, read_graph, share_left_out

SPACE = FeatureSpace(
    (
        Categorical("sex", ("female", "male", "none"), sensitive=True),
        Integer("age", 20, 69, sensitive=True),
        Levels.spaced("gpa", -20, 30, step=0.01),
        Integer("income", -500, 800, missing=True),
    )
)


def simulated(n_people: int, seed: int = 0) -> tuple[list[dict[str, Any]], Matrix]:
    """Draw from gpa = 2 + 0.5 male + 0.02 age + u, income = 100 + 20 gpa + 2 age + v."""
    rng = np.random.default_rng(seed)
    male = rng.integers(0, 2, n_people)
    age = rng.integers(20, 70, n_people)
    gpa = np.round(2 + 0.5 * male + 0.02 * age + rng.normal(0, 0.8, n_people), 2)
    income = np.round(100 + 20 * gpa + 2 * age + rng.normal(0, 15, n_people))
    records = [
        {"sex": ("female", "male")[m], "age": int(a), "gpa": float(g), "income": int(i)}
        for m, a, g, i in zip(male, age, gpa, income, strict=True)
    ]
    return records, SPACE.encode(records)


GRAPH = "sex, age -> gpa; gpa, age -> income"


def test_a_fit_recovers_the_effects_of_a_linear_gaussian_model() -> None:
    _, people = simulated(40_000)
    first, second = fit_equations(SPACE, people, read_graph(GRAPH, SPACE))
    assert first.entry["shifts"]["sex"]["male"] == pytest.approx(0.5, abs=0.03)
    assert first.entry["slopes"]["age"] == pytest.approx(0.02, abs=0.001)
    assert second.entry["slopes"] == pytest.approx({"gpa": 20, "age": 2}, abs=0.3)
    assert first.diagnostics[0].startswith("gpa: 40,000 people; the causes explain")
    assert "sex = none: nobody has it, so no effect is known" in first.diagnostics
    assert any(
        line.startswith("noise by sex: the widest group has 1.0") for line in first.diagnostics
    )


def test_counterfactuals_equal_the_closed_form() -> None:
    """All effects are multiples of the steps, so nothing is rounded."""
    relation = Consequences.of(
        SPACE,
        {"column": "gpa", "shifts": {"sex": {"male": 0.5}}, "slopes": {"age": 0.02}},
        {"column": "income", "slopes": {"gpa": 100, "age": 2}},
    )
    records, people = simulated(40, seed=1)
    for record, person in zip(records, people, strict=True):
        for row in np.concatenate(list(relation.counterparts(person))):
            other = SPACE.decode(row)
            male = (other["sex"] == "male") - (record["sex"] == "male")
            years = int(str(other["age"])) - record["age"]
            gpa = 0.5 * male + 0.02 * years
            assert float(str(other["gpa"])) == pytest.approx(record["gpa"] + gpa, abs=1e-9)
            expected = record["income"] + 100 * gpa + 2 * years
            assert float(str(other["income"])) == pytest.approx(expected, abs=1e-9)


def test_rounded_effects_are_within_half_a_step_of_the_closed_form() -> None:
    relation = Consequences.of(
        SPACE, {"column": "gpa", "slopes": {"age": 0.0137}, "shifts": {"sex": {"male": 0.513}}}
    )
    records, people = simulated(10, seed=2)
    for record, person in zip(records, people, strict=True):
        for row in np.concatenate(list(relation.counterparts(person))):
            other = SPACE.decode(row)
            male = (other["sex"] == "male") - (record["sex"] == "male")
            exact = 0.513 * male + 0.0137 * (int(str(other["age"])) - record["age"])
            # Two effects, each rounded twice: for the person and for the counterpart.
            assert abs(float(str(other["gpa"])) - record["gpa"] - exact) <= 4 * 0.005 + 1e-9


def test_missing_cells_are_left_out_and_counted() -> None:
    records, _ = simulated(200)
    records[3]["income"] = None
    fitted = fit_equations(SPACE, SPACE.encode(records), read_graph("age -> income", SPACE))
    assert "199 people, 1 with missing cells left out" in fitted[0].diagnostics[0]


def test_different_spreads_of_noise_are_stated() -> None:
    rng = np.random.default_rng(0)
    records = [
        {"sex": sex, "age": 30, "gpa": 3.0, "income": round(rng.normal(0, width))}
        for sex, width in (("female", 10), ("male", 30))
        for _ in range(200)
    ]
    fitted = fit_equations(SPACE, SPACE.encode(records), read_graph("sex -> income", SPACE))
    assert any("additive noise is doubtful" in line for line in fitted[0].diagnostics)


def test_counterparts_outside_the_domain_are_counted() -> None:
    _, people = simulated(30)
    relation = Consequences.of(SPACE, {"column": "gpa", "slopes": {"age": 1}})
    assert 0.1 < share_left_out(relation, people) < 0.9


@pytest.mark.parametrize(
    ("graph", "problem"),
    [
        ("", "no arrows: expected some"),
        ("sex", "invalid arrow: got 'sex'; expected causes"),
        ("sex ->", "invalid arrow: got 'sex ->'"),
        ("sx -> gpa", "unknown column in the graph: got 'sx'"),
        ("sex -> gpa -> gpa", "form a cycle: got gpa -> gpa"),
        ("sex -> gpa -> income -> gpa", "form a cycle"),
        ("sex -> age", "an equation of a sensitive column: got 'age'"),
        ("gpa -> income", "reads no sensitive column and no descendant"),
    ],
)
def test_bad_graphs_are_refused(graph: str, problem: str) -> None:
    _, people = simulated(100)
    with pytest.raises(SchemaError, match=problem):
        fit_equations(SPACE, people, read_graph(graph, SPACE))


def test_tables_that_determine_no_effect_are_refused() -> None:
    records, people = simulated(100)
    with pytest.raises(
        SchemaError, match=r"too few people to fit 'gpa': got 5 .*expected at least"
    ):
        fit_equations(SPACE, people[:5], read_graph("sex -> gpa", SPACE))
    same = SPACE.encode([{**record, "age": 30} for record in records])
    with pytest.raises(SchemaError, match="the causes of 'gpa' determine each other"):
        fit_equations(SPACE, same, read_graph("age -> gpa", SPACE))
