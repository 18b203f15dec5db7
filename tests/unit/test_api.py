import numpy as np
import pytest

import feta
from tests.examples import PERSON, SPACE, linear


def test_verify_worst_and_tally_agree() -> None:
    model = linear(age=1.0, bias=-31.0)
    first = feta.verify(feta.FairAt(model, PERSON))
    farthest = feta.worst(model, PERSON)
    assert isinstance(first, feta.Unfair)
    assert isinstance(farthest, feta.Unfair)
    assert SPACE.decode(first.counterexample.counterpart)["age"] == 31
    assert SPACE.decode(farthest.counterexample.counterpart)["age"] == 90
    assert (first.optimal, farthest.optimal) == (False, True)
    assert feta.tally(model, PERSON[None, :]).favorable.tolist() == [2 * 60]


def test_tally_reads_no_sensitive_column_but_checks_the_others() -> None:
    hidden = np.array([np.nan, np.nan, np.nan, 50.0])
    assert feta.tally(linear(), hidden[None, :]).favorable.tolist() == [146]
    hidden[3] = 101.0
    with pytest.raises(feta.DomainError, match=r"'income' must be .*, got 101\.0"):
        feta.tally(linear(), hidden[None, :])


def test_an_unknown_engine_is_refused_everywhere() -> None:
    match = r"an engine must be one of 'auto', .*got 'exhaustiv'; did you mean 'exhaustive'\?"
    with pytest.raises(feta.EngineError, match=match):
        feta.verify(feta.FairAt(linear(), PERSON), engine="exhaustiv")
    with pytest.raises(feta.EngineError, match=match):
        feta.worst(linear(), PERSON, engine="exhaustiv")
    with pytest.raises(feta.EngineError, match=match):
        feta.tally(linear(), PERSON[None, :], engine="exhaustiv")
