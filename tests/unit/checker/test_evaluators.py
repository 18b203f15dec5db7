import gc
import weakref
from fractions import Fraction

import numpy as np
import pytest

from feta import CertificateError, Model
from feta.checker.evaluators import (
    EVALUATORS,
    NetworkEvaluator,
    ScorerEvaluator,
    evaluator_of,
)
from feta.checker.exact_ensemble import ENSEMBLE
from feta.checker.exact_forest import TREE_ENSEMBLE
from feta.checker.exact_network import PIECEWISE_LINEAR
from feta.checker.exact_smooth import SMOOTH
from feta.checker.network_bounds import NetworkBounds
from feta.checker.sensitive_axis import axes_of
from tests.examples import PERSON, SPACE, linear
from tests.extensions.toys import Square

SQUARE = Model(SPACE, Square((0.5, 0.0, 1.0, -0.25), 4.0), threshold=0.0)


def test_a_network_is_evaluated_from_its_stored_numbers() -> None:
    model = linear(age=0.5, female=2.0, bias=1.0)
    evaluator = evaluator_of(model)
    assert isinstance(evaluator, NetworkEvaluator)
    assert evaluator.scores(PERSON[None, :]).fractions() == [18]
    bounds = evaluator.bounds(axes_of(model), PERSON)
    assert isinstance(bounds, NetworkBounds)
    assert bounds.network is evaluator.network
    assert bounds.person is PERSON


def test_a_model_is_converted_once() -> None:
    model = linear(age=0.5)
    assert evaluator_of(model) is evaluator_of(model)
    assert evaluator_of(linear(age=0.5)) is not evaluator_of(model)


def test_few_models_are_kept() -> None:
    model = linear(age=0.125)
    evaluator_of(model)
    kept = weakref.ref(model)
    del model
    for bias in range(8):
        evaluator_of(linear(bias=float(bias)))
    gc.collect()
    assert kept() is None


def test_a_scorer_of_an_unknown_kind_is_evaluated_by_its_own_exact_scores() -> None:
    evaluator = evaluator_of(SQUARE)
    assert isinstance(evaluator, ScorerEvaluator)
    expected = (Fraction(15) - Fraction(50, 4)) ** 2 - 4
    assert evaluator.scores(np.stack([PERSON, PERSON])).fractions() == [expected, expected]


def test_the_bounds_of_an_unknown_kind_are_not_re_checked() -> None:
    message = (
        "^the bounds of this certificate cannot be re-checked: got a scorer of the kind 'square'; "
        "expected one of 'piecewise-linear network', 'tree ensemble'$"
    )
    with pytest.raises(CertificateError, match=message):
        evaluator_of(SQUARE).bounds(axes_of(SQUARE), PERSON)


def test_evaluators_are_registered_by_kind() -> None:
    assert list(EVALUATORS) == [PIECEWISE_LINEAR, TREE_ENSEMBLE, ENSEMBLE, SMOOTH]
    assert list(EVALUATORS) == [
        "piecewise-linear network",
        "tree ensemble",
        "ensemble",
        "smooth network",
    ]
