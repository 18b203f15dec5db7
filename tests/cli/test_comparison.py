import numpy as np
import pytest

from feta.arrays import Answers, Matrix
from feta.cli.comparison import REPLAYED_PEOPLE, check_reading
from feta.cli.open_model import Opened
from feta.errors import NetworkError
from tests.examples import linear

MODEL = linear(age=1.0, bias=-50.5)


def otherwise(people: Matrix) -> Answers:
    return ~np.asarray(MODEL.decide(people), dtype=bool)


def test_a_model_that_decides_as_feta_does_is_answered_for() -> None:
    check_reading(Opened(MODEL, MODEL.decide, runtime="its own predict"))
    check_reading(Opened(MODEL))  # nothing to compare with


def test_a_model_that_itself_decides_otherwise_is_not_answered_for() -> None:
    told = f"its own predict decides {REPLAYED_PEOPLE:,} of {REPLAYED_PEOPLE:,} people otherwise"
    with pytest.raises(NetworkError, match=told):
        check_reading(Opened(MODEL, otherwise, runtime="its own predict"))
