import re
from copy import copy

import numpy as np
import pytest

from feta import (
    Argmax,
    CertificateError,
    FairAt,
    Model,
    Network,
    OneVsRest,
    Threshold,
    Tolerance,
    WorstAt,
)
from feta.checker.pair import prove_pair
from feta.rule import Rule
from feta.verdict.counterexample import Counterexample
from tests.examples import PERSON, SPACE, linear

MODEL = linear(age=1.0, bias=-31.0)
QUERY = FairAt(MODEL, PERSON)
OLDER = np.array([31.0, *PERSON[1:]])
PAIR = Counterexample(MODEL, PERSON, OLDER)


def forged(pair: Counterexample = PAIR, /, **values: object) -> Counterexample:
    """Return a copy with other values, as an engine of another package could make it."""
    result = copy(pair)
    for name, value in values.items():
        object.__setattr__(result, name, value)
    return result


@pytest.mark.parametrize("query", [QUERY, WorstAt(MODEL, PERSON)])
def test_a_true_pair_passes(query: FairAt) -> None:
    prove_pair(PAIR, query)


CLASSES = Network.from_layers([([[1.0, 0, 0, 0], [0.0] * 4, [0.5, 0, 0, 0]], [0.0, 40.5, 5.0])])


@pytest.mark.parametrize("rule", [Argmax(("a", "b", "c")), OneVsRest(("a", "b", "c"), "b")])
def test_a_true_pair_of_classes_passes(rule: Rule) -> None:
    model = Model(SPACE, CLASSES, rule)
    old = np.array([50.0, *PERSON[1:]])
    pair = Counterexample(model, PERSON, old)
    assert pair.gap == 9.5
    prove_pair(pair, FairAt(model, PERSON))
    with pytest.raises(CertificateError, match="got the scores, decisions and gap"):
        prove_pair(forged(pair, gap=9.0), FairAt(model, PERSON))


LIMIT = Model(SPACE, Network.from_layers([([[1.0, 0, 0, 0]], [0.0])]), Tolerance(71.0))
YOUNG, OLD = (np.array([age, *PERSON[1:]]) for age in (18.0, 90.0))


def test_any_two_counterparts_violate_a_tolerance() -> None:
    pair = Counterexample(LIMIT, YOUNG, OLD)
    prove_pair(pair, FairAt(LIMIT, PERSON))
    richer = FairAt(LIMIT, np.array([*PERSON[:3], 51.0]))
    with pytest.raises(CertificateError, match="the counterexample belongs to another person"):
        prove_pair(pair, richer)


def test_the_owner_is_checked() -> None:
    with pytest.raises(CertificateError, match="the counterexample belongs to another person"):
        prove_pair(PAIR, FairAt(MODEL, OLDER))
    with pytest.raises(CertificateError, match="the counterexample belongs to another model"):
        prove_pair(PAIR, FairAt(linear(age=2.0), PERSON))


def rejected(pair: Counterexample, message: str, query: FairAt = QUERY) -> None:
    with pytest.raises(CertificateError, match=f"^invalid counterexample: got {message}$"):
        prove_pair(pair, query)


@pytest.mark.parametrize("age", [91.0, 30.5, float("nan")])
def test_both_people_must_be_in_the_space(age: float) -> None:
    outside = np.array([age, *PERSON[1:]])
    message = re.escape(
        f"{outside.tolist()}, which is outside the space; expected two people of the space"
    )
    rejected(forged(counterpart=outside), message)
    # Regression: neither of the two needs to be the person of the query.
    pair = forged(Counterexample(LIMIT, YOUNG, OLD), person=outside)
    rejected(pair, message, FairAt(LIMIT, PERSON))


def test_the_two_people_must_be_related() -> None:
    richer = np.array([40.0, *PERSON[1:3], 51.0])
    message = re.escape(
        "{'age': 30, 'sex': 'female', 'income': 50.0} and {'age': 40, 'sex': 'female', "
        "'income': 51.0}, who are not related; expected counterparts"
    )
    rejected(forged(counterpart=richer), message)


def test_decisions_must_differ_exactly() -> None:
    """The counterpart is exactly on the threshold, or one ulp below it."""
    below = Model(SPACE, MODEL.scorer, Threshold(float(np.nextafter(0.0, 1))))
    query = FairAt(below, PERSON)
    message = re.escape(
        "the exact scores [[-1.0], [0.0]], which give the same decision, or are within the "
        "tolerance; expected different decisions"
    )
    rejected(forged(fingerprint=below.fingerprint), message, query)
    young = np.array([29.0, *PERSON[1:]])
    rejected(
        forged(counterpart=young), re.escape("the exact scores [[-1.0], [-2.0]], which") + ".*"
    )


def test_scores_within_the_tolerance_are_no_counterexample() -> None:
    pair = forged(Counterexample(LIMIT, YOUNG, OLD), counterpart=np.array([89.0, *PERSON[1:]]))
    message = re.escape("the exact scores [[18.0], [89.0]], which give the same decision") + ".*"
    rejected(pair, message, FairAt(LIMIT, PERSON))


@pytest.mark.parametrize(
    ("values", "stated"),
    [
        ({"gap": 2.0}, "([-1.0, 0.0], (0, 1), 2.0)"),
        ({"decisions": (1, 0)}, "([-1.0, 0.0], (1, 0), 1.0)"),
        ({"scores": np.array([-1.0, 0.5])}, "([-1.0, 0.5], (0, 1), 1.0)"),
    ],
)
def test_the_stated_numbers_must_be_the_exact_ones(values: dict[str, object], stated: str) -> None:
    message = "the scores, decisions and gap " + re.escape(
        f"{stated}; expected ([-1.0, 0.0], (0, 1), 1.0)"
    )
    rejected(forged(**values), message)
