"""Real-valued sensitive attributes of tree ensembles against the definition in fractions."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import feta
from feta import Categorical, FairAt, FeatureSpace, Integer, Model, Real, WorstAt
from feta.arrays import Matrix, Vector
from feta.checker.admit import admit
from feta.checker.prove import prove
from feta.engine.exhaustive import ExhaustiveEngine
from feta.engine.lattice import LatticeEngine
from feta.engine.protocol import UNLIMITED, Engine
from feta.engine.registry import choose
from feta.errors import CertificateError, EngineError
from feta.scorer.forest import kernel
from feta.scorer.forest.trees import CUT
from feta.scorer.sections import sections_of
from feta.space.attribute import Derived
from feta.verdict.certificate import BoundsProof, Certificate
from tests.forests import random_forest, scores

SPACE = FeatureSpace(
    (
        Real("height", 0, 9, sensitive=True),
        Categorical("sex", ("f", "m", "x"), sensitive=True),
        Integer("rooms", 1, 4, missing=True),
        Real("income", 0, 9),
    )
)
TWO_REAL = FeatureSpace(
    (
        Real("height", 0, 9, sensitive=True),
        Real("weight", -1, 3, sensitive=True),
        Categorical("sex", ("f", "m"), sensitive=True),
    )
)
ENGINES: list[Engine] = [ExhaustiveEngine()]
if kernel.is_built():
    ENGINES.append(LatticeEngine(threads=1))


def people(rng: np.random.Generator, space: FeatureSpace, count: int) -> Matrix:
    """Return random people; numbers are on cuts, next to them, or in between."""
    parts = []
    for attribute in space.attributes:
        if isinstance(attribute, Real):
            numbers = rng.choice([attribute.low, attribute.high, 1, 1.5, 2, 2.7], count)
            parts.append(np.where(rng.random(count) < 0.3, np.nextafter(numbers, 1.2), numbers))
            parts[-1] = parts[-1][:, None]
        else:
            assert not isinstance(attribute, Derived)
            parts.append(attribute.codes(rng.integers(0, attribute.n_values, count)))
    return np.hstack(parts)


def counterparts(model: Model, person: Vector) -> list[Vector]:
    """Return counterparts on both sides of every cut, at the limits and in between."""
    rows, trees = [np.array(person)], model.scorer.trees  # type: ignore[attr-defined]
    for attribute in model.space.sensitive:
        columns = model.space.columns_of(attribute)
        if isinstance(attribute, Real):
            cuts = trees.cut[(trees.kind == CUT) & (trees.source == columns.start)]
            numbers = np.concatenate(
                [cuts, np.nextafter(cuts, np.inf), np.nextafter(cuts, -np.inf), cuts + 0.1]
            )
            numbers = np.append(numbers, [attribute.low, attribute.high])
            inside = (numbers >= attribute.low) & (numbers <= attribute.high)
            codes = np.unique(numbers[inside])[:, None]
        else:
            codes = attribute.codes(np.arange(attribute.n_values))  # type: ignore[union-attr]
        moved = []
        for row in rows:
            for code in codes:
                other = np.array(row)
                other[columns] = code
                moved.append(other)
        rows = moved
    return rows


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)
@pytest.mark.parametrize("seed", range(24))
def test_decisions_are_those_of_the_definition(engine: Engine, seed: int) -> None:
    rng = np.random.default_rng([31, seed])
    space = (SPACE, TWO_REAL)[seed % 2]
    rows = people(rng, space, 2)
    forest = random_forest(rng, space, mean=seed % 3 == 0)
    if seed % 4 == 3:
        forest = replace(forest, base=forest.base + 100)  # everybody is fair
    model = Model(space, forest)
    others = [scores(forest, other)[0] for other in counterparts(model, rows[0])]
    value = float(others[rng.integers(len(others))]) if seed % 4 != 3 else 0.0
    model = Model(space, forest, feta.Threshold(value, "above", "favorable"))
    for person in rows:
        own, exact = (
            scores(forest, person)[0] >= Fraction(value),
            [scores(forest, other)[0] for other in counterparts(model, person)],
        )
        different = [score for score in exact if (score >= Fraction(value)) != own]
        for kind in (FairAt, WorstAt):
            query = kind(model, person)
            assert engine.accepts(query)
            verdict = admit(query, engine.solve(query, UNLIMITED), trusted=True)
            prove(verdict, query)
            if not different:
                assert isinstance(verdict, feta.Fair)
                assert isinstance(verdict.certificate.proof, BoundsProof)
                continue
            assert isinstance(verdict, feta.Unfair)
            pair = verdict.counterexample
            np.testing.assert_array_equal(pair.person, person)
            if kind is WorstAt:
                assert verdict.optimal
                gap = max(abs(score - scores(forest, person)[0]) for score in different)
                assert pair.gap == pytest.approx(float(gap), rel=1e-12)


@pytest.mark.parametrize("seed", range(8))
def test_classes_and_tolerances_are_those_of_the_definition(seed: int) -> None:
    rng = np.random.default_rng([32, seed])
    rows, engine = people(rng, SPACE, 1), ENGINES[-1]
    forest = random_forest(rng, SPACE, outputs=3)
    model = Model(SPACE, forest, feta.Argmax(("a", "b", "c")))
    own = scores(forest, rows[0])
    winner = own.index(max(own))
    winners = set()
    for other in counterparts(model, rows[0]):
        values = scores(forest, other)
        winners.add(values.index(max(values)))
    query = FairAt(model, rows[0])
    verdict = admit(query, engine.solve(query, UNLIMITED), trusted=True)
    prove(verdict, query)
    assert isinstance(verdict, feta.Fair) == (winners == {winner})
    forest = random_forest(rng, SPACE)
    exact = [scores(forest, other)[0] for other in counterparts(Model(SPACE, forest), rows[0])]
    span = max(exact) - min(exact)
    for epsilon in (float(span), float(np.nextafter(float(span), 0)), float(span) + 1):
        query = FairAt(Model(SPACE, forest, feta.Tolerance(epsilon)), rows[0])
        verdict = admit(query, engine.solve(query, UNLIMITED), trusted=True)
        prove(verdict, query)
        assert isinstance(verdict, feta.Fair) == (span <= Fraction(epsilon))


def unfair_query(rng: np.random.Generator) -> FairAt:
    """Return a query about a person with a counterexample."""
    for _ in range(40):
        query = FairAt(Model(SPACE, random_forest(rng, SPACE)), people(rng, SPACE, 1)[0])
        if isinstance(ENGINES[-1].solve(query, UNLIMITED), feta.Unfair):
            return query
    raise AssertionError


def test_a_false_proof_is_rejected() -> None:
    query = unfair_query(np.random.default_rng(5))
    sections = sections_of(query.model.restricted)
    assert sections is not None
    for proof in (BoundsProof(sections.cuts), BoundsProof((None,))):
        certificate = Certificate(query.digest, "lattice", proof)
        with pytest.raises(CertificateError, match="does not prove fairness"):
            prove(certificate, query)


def test_counts_need_finite_attributes() -> None:
    rng = np.random.default_rng(6)
    model, rows = Model(SPACE, random_forest(rng, SPACE)), people(rng, SPACE, 1)
    with pytest.raises(EngineError, match="cannot count counterparts: got 'height'"):
        feta.tally(model, rows)
    assert choose(FairAt(model, rows[0])).name in ("lattice", "exhaustive")
