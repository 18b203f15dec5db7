"""The checker walks trees itself, from stored arrays, and agrees with the definition."""

from dataclasses import replace

import numpy as np
import pytest

import feta
from feta import FairAt, Model
from feta.checker.exact_forest import StoredForest
from feta.checker.prove import prove
from feta.errors import CertificateError
from feta.scorer.forest.trees import Numbers, OneHot
from feta.scorer.protocol import StoredScorer
from feta.verdict.certificate import BoundsProof, Certificate
from tests.forests import random_forest, scores
from tests.unit.scorer.forest.test_forest import SPACE, people


@pytest.mark.parametrize("seed", range(20))
def test_scores_are_those_of_the_definition(seed: int) -> None:
    rng = np.random.default_rng([21, seed])
    forest = random_forest(rng, SPACE, outputs=1 + seed % 2, mean=seed % 3 == 0)
    if forest.outputs == 2:
        forest = forest.difference()
    rows = people(rng, 10)
    expected = [score for row in rows for score in scores(forest, row)]
    assert StoredForest.of(forest.stored()).scores(rows).fractions() == expected


@pytest.mark.parametrize("seed", range(12))
def test_prove_accepts_verdicts_and_rejects_those_of_a_changed_forest(seed: int) -> None:
    rng = np.random.default_rng([22, seed])
    forest = random_forest(rng, SPACE, mean=True)
    rows = people(rng, 4)
    model = Model(SPACE, forest, threshold=float(scores(forest, rows[0])[0]))
    for row in rows:
        query = FairAt(model, row)
        verdict = feta.verify(query)
        prove(verdict, query)
        if isinstance(verdict, feta.Fair):
            values = np.array(forest.trees.values)
            reached = forest.trees.leaves(row[None, :])[0]
            others = np.setdiff1d(np.flatnonzero(forest.trees.kind == 0), reached)
            values[others] += np.where(feta.Model.decide(model, row[None, :])[0], -99, 99)
            changed = Model(
                SPACE, replace(forest, trees=replace(forest.trees, values=values)), model.rule
            )
            lie = FairAt(changed, row)
            moved = any(
                (scores(changed.scorer, other)[0] > 0) != (scores(changed.scorer, row)[0] > 0)  # type: ignore[arg-type]
                for block in model.relation.counterparts(row)
                for other in block
            )
            certificate = replace(verdict.certificate, query_digest=lie.digest)
            if moved:
                with pytest.raises(CertificateError, match="does not prove fairness"):
                    prove(certificate, lie)


@pytest.mark.parametrize("seed", range(12))
def test_a_proof_by_bounds_is_accepted_exactly_if_it_is_true(seed: int) -> None:
    rng = np.random.default_rng([1, seed])
    model = Model(SPACE, random_forest(rng, SPACE), threshold=0.0)
    query = FairAt(model, people(rng, 1)[0])
    own = scores(model.scorer, query.person)[0] >= 0  # type: ignore[arg-type]
    fair = all(
        (scores(model.scorer, other)[0] >= 0) == own  # type: ignore[arg-type]
        for block in model.relation.counterparts(query.person)
        for other in block
    )
    certificate = Certificate(query.digest, "other", BoundsProof((None,)))
    if fair:
        prove(certificate, query)
    else:
        with pytest.raises(CertificateError, match="does not prove fairness"):
            prove(certificate, query)


def stored(**changes: np.ndarray) -> StoredScorer:
    forest = random_forest(np.random.default_rng(5), SPACE).stored()
    return StoredScorer(forest.kind, {**forest.arrays, **changes})


def test_what_the_checker_does_not_understand_is_rejected() -> None:
    with pytest.raises(CertificateError, match=r"unknown arrays .* got \['weights'\]"):
        StoredForest.of(stored(weights=np.ones(2)))
    person = people(np.random.default_rng(2), 1)
    backward = stored(left=np.zeros_like(stored().arrays["left"]))
    backward = StoredScorer(backward.kind, {**backward.arrays, "right": backward.arrays["left"]})
    with pytest.raises(CertificateError, match="expected children after their parents"):
        StoredForest.of(backward).scores(person)
    forests = [random_forest(np.random.default_rng(seed), SPACE) for seed in range(30)]
    reading = next(forest for forest in forests if forest.trees.kind[forest.trees.roots[0]] == 2)
    evaluator = StoredForest.of(reading.stored())
    person[:] = people(np.random.default_rng(2), 1)
    domain = reading.trees.domains[reading.trees.source[reading.trees.roots[0]]]
    assert isinstance(domain, OneHot | Numbers)
    column = domain.first if isinstance(domain, OneHot) else domain.column
    person[:, column : column + (domain.width if isinstance(domain, OneHot) else 1)] = 0.25
    with pytest.raises(CertificateError, match=r"expected one|expected a value that the ensemble"):
        evaluator.scores(person)
