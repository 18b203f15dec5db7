"""Bounds that are equal to a limit: as exact as a list of all counterparts."""

from pathlib import Path

import numpy as np
import pytest

from feta import (
    Argmax,
    FeatureSpace,
    Integer,
    Model,
    Network,
    OneVsRest,
    Real,
    Threshold,
    Tolerance,
)
from feta.auditing.auditor import Auditor
from feta.auditing.certify import Certification, CertifiedFacts
from feta.io.canonical_json import exact_text
from feta.rule import Rule
from feta_check import claims
from tests.certificates.certify import check, seal

SPACE = FeatureSpace((Integer("age", 40, 59, sensitive=True), Real("income", 0, 9)))
RISING, FALLING, ZERO, LOW = ([1.0, 0], -40.0), ([-1.0, 0], 40.0), ([0.0, 0], 0.0), ([0.0, 0], -1.0)
ABOVE, BELOW = Threshold(0.0), Threshold(0.0, favors="below")
STRICT = Threshold(0.0, equality="unfavorable")
STRICT_BELOW = Threshold(0.0, favors="below", equality="unfavorable")
NAMES = ("a", "b", "c")

# The lines of all outputs, the rule, and whether everybody gets the decision of age 59.
CASES: list[tuple[list[tuple[list[float], float]], Rule, bool]] = [
    ([RISING], ABOVE, True),
    ([RISING], STRICT, False),
    ([RISING], BELOW, False),
    ([RISING], STRICT_BELOW, True),
    ([FALLING], ABOVE, False),
    ([FALLING], STRICT, True),
    ([FALLING], BELOW, True),
    ([FALLING], STRICT_BELOW, False),
    ([RISING, ZERO, LOW], Argmax(NAMES), True),
    ([ZERO, RISING, LOW], Argmax(NAMES), False),
    ([ZERO, FALLING, LOW], Argmax(NAMES), True),
    ([FALLING, LOW, ZERO], Argmax(NAMES), False),
    ([RISING, ZERO, LOW], OneVsRest(NAMES, "a"), True),
    ([RISING, ZERO, LOW], OneVsRest(NAMES, "b"), True),
    ([ZERO, RISING, LOW], OneVsRest(NAMES, "a"), False),
    ([ZERO, RISING, LOW], OneVsRest(NAMES, "b"), False),
    ([ZERO, RISING, LOW], OneVsRest(NAMES, "c"), True),
    ([LOW, FALLING, ZERO], OneVsRest(NAMES, "b"), False),
    ([RISING], Tolerance(19.0), True),
    ([RISING], Tolerance(float(np.nextafter(19.0, 0))), False),
    ([FALLING], Tolerance(19.0), True),
    ([FALLING], Tolerance(18.0), False),
]


@pytest.mark.parametrize(("outputs", "rule", "fair"), CASES, ids=str)
def test_a_bound_that_is_equal_to_a_limit_is_decided_exactly(
    outputs: list[tuple[list[float], float]],
    rule: Rule,
    fair: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    network = Network.from_layers([([row for row, _ in outputs], [bias for _, bias in outputs])])
    model = Model(SPACE, network, rule)
    person = SPACE.encode([{"age": 59, "income": 0}])
    with Certification(tmp_path, Auditor(model), CertifiedFacts()) as certification:
        certification.finish(complete=True)
    regression = isinstance(rule, Tolerance)
    score = float(model.exact_scores(person).floats()[0, 0])
    decision = exact_text(score) if regression else int(model.decide(person)[0])
    claim = {
        "decision": decision,
        "fair_decision": None,
        "id": "",
        "person": [exact_text(59.0), exact_text(0.0)],
        "row": 1,
        "salt": "0" * 32,
        "verdict": "fair",
    }
    proofs: list[object] = [{"counterparts": 20}]
    if not regression:
        proofs += [{"tree": [0]}, {"tree": [[0, 0], 0, 0]}, {"tree": [[0, 18], 0, 0]}]
    else:
        middle = {"center": exact_text(float(np.copysign(9.5, score)))}
        proofs += [{"tree": [[0, 9], 0, 0], **middle}]
        off = {"center": exact_text(float(np.copysign(9.25, score)))}
        seal(tmp_path, [claim | {"proof": {"tree": [0], **off}}])
        assert check(tmp_path) == 1
    for proof in proofs:
        seal(tmp_path, [claim | {"proof": proof}])
        assert check(tmp_path) == (0 if fair else 1), "by a list"
    monkeypatch.setattr(claims, "MAX_COUNTERPARTS", 0)
    for proof in proofs:
        seal(tmp_path, [claim | {"proof": proof}])
        assert check(tmp_path) == (0 if fair else 3), "by bounds"
