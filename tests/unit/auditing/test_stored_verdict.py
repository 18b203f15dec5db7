"""Verdicts in the form in which journals store them, intact and damaged."""

import json
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from feta import FeatureSpace, Integer, Model, Network, Real, Tolerance
from feta.auditing.stored_verdict import read_verdict, stored_verdict
from feta.checker.admit import admit
from feta.query import WorstAt
from feta.verdict.certificate import BoundsProof, Certificate, LatticeProof, Proof
from feta.verdict.verdict import Fair, Reason, Unknown

SPACE = FeatureSpace((Integer("age", 18, 90, sensitive=True), Real("income", 0, 99)))
NETWORK = Network.from_layers([([[0.1, 1.0]], [-9.0])])
DECISIONS, SCORES = Model(SPACE, NETWORK), Model(SPACE, NETWORK, Tolerance(9.0))
PERSON = np.array([30.0, 50.0])
MOVING = SPACE.sensitive_columns

CUTS = BoundsProof(((0, 40.0), None, (0, 60.0), None, None))
IN_BAND = BoundsProof((None,), Fraction(1, 3))


def stored(model: Model, proof: Proof) -> tuple[WorstAt, dict[str, Any]]:
    """Return a query, and the stored claim that its person is treated fairly."""
    query = WorstAt(model, PERSON)
    content = stored_verdict(Fair(Certificate(query.digest, "milp", proof), "safe"), MOVING)
    return query, json.loads(json.dumps(content))


@pytest.mark.parametrize(
    ("model", "proof"),
    [
        (DECISIONS, LatticeProof(73)),
        (SCORES, LatticeProof(73)),
        (DECISIONS, CUTS),
        (SCORES, IN_BAND),
    ],
)
def test_a_certificate_is_read_back(model: Model, proof: Proof) -> None:
    query, content = stored(model, proof)
    verdict = read_verdict(content, query)
    assert verdict == Fair(Certificate(query.digest, "milp", proof), "safe")
    assert verdict is not None
    assert admit(query, verdict, trusted=True) == verdict


@pytest.mark.parametrize(
    ("model", "proof", "damage"),
    [
        (DECISIONS, LatticeProof(73), {"fair": 72}),
        (DECISIONS, LatticeProof(73), {"runtime": "certain"}),
        (DECISIONS, LatticeProof(73), {"engine": 7}),
        (DECISIONS, CUTS, {"fair": {"cuts": [], "center": None}}),
        (DECISIONS, CUTS, {"fair": {"cuts": [[0, 40.0], None], "center": None}}),
        (DECISIONS, CUTS, {"fair": {"cuts": [None, None], "center": None}}),
        (DECISIONS, CUTS, {"fair": {"cuts": [None], "center": "1/3"}}),
        (SCORES, IN_BAND, {"fair": {"cuts": [None], "center": None}}),
    ],
)
def test_a_damaged_certificate_does_not_hold(
    model: Model, proof: Proof, damage: dict[str, object]
) -> None:
    query, content = stored(model, proof)
    assert read_verdict(content, query) is not None
    assert read_verdict(content | damage, query) is None


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"fair": 73},
        {"fair": [], "engine": "", "runtime": "safe"},
        {"undecided": "no such reason", "solver": "", "best": None},
        {"unfair": ["00", 1], "optimal": True},
        {"unfair": [], "optimal": True},
    ],
)
def test_values_of_wrong_types_raise_the_errors_that_journals_expect(
    content: dict[str, Any],
) -> None:
    with pytest.raises((ValueError, TypeError, KeyError)):
        read_verdict(content, WorstAt(DECISIONS, PERSON))


def test_an_unknown_verdict_is_read_back() -> None:
    query = WorstAt(DECISIONS, PERSON)
    unknown = Unknown(Reason.SOLVER_FAILED, solver="HiGHS")
    content = json.loads(json.dumps(stored_verdict(unknown, MOVING)))
    assert read_verdict(content, query) == unknown
    assert read_verdict(content | {"solver": 7}, query) is None
    same = [PERSON[MOVING].tobytes().hex()] * 2
    assert read_verdict(content | {"best": same}, query) is None
