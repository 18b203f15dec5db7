"""Scorers and relations of other packages work everywhere through their protocols."""

from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import feta
from feta import Categorical, FairAt, FairPredictor, FeatureSpace, Integer, Model, Network, WorstAt
from feta.arrays import Vector
from feta.relation.protocol import Relation
from feta.scorer.protocol import Scorer
from tests.extensions.toys import Grown, Square

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
    audit.to_html(tmp_path / "report.html")
    assert "income" in (tmp_path / "report.html").read_text(encoding="utf-8")


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
