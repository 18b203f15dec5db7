"""Earlier names of public attributes return the same value with a warning."""

import numpy as np
import pytest

import feta
from feta import FairAt, FeatureSpace, Integer, Model, Network, Real, Tolerance, VoteWeights

SPACE = FeatureSpace((Integer("age", 19, 75, sensitive=True), Real("income", 0, 500)))
NETWORK = Network.from_layers([([[0.5, 0.1]], [-20.0])])
MODEL = Model(SPACE, NETWORK, threshold=0.0)
PEOPLE = SPACE.encode({"age": 30, "income": 52})

FAIR = feta.verify(FairAt(Model(SPACE, NETWORK, threshold=-99.0), PEOPLE[0]))
UNFAIR = feta.verify(FairAt(MODEL, PEOPLE[0]))
UNKNOWN = feta.verify(FairAt(MODEL, PEOPLE[0]), budget=feta.Budget(evaluations=1))


def test_the_examples_contain_each_kind_of_verdict() -> None:
    kinds = (type(FAIR), type(UNFAIR), type(UNKNOWN))
    assert kinds == (feta.Fair, feta.Unfair, feta.Unknown)


@pytest.mark.parametrize(
    ("owner", "old", "new"),
    [
        (NETWORK, "reading", "provenance"),
        (FAIR, "reading", "provenance"),
        (UNFAIR, "reading", "provenance"),
        (UNKNOWN, "reading", "provenance"),
        (feta.tally(MODEL, PEOPLE), "settled", "decided"),
        (feta.tally(MODEL, PEOPLE), "safe", "runtime_safe"),
        (feta.spread(Model(SPACE, NETWORK, Tolerance(1.0)), PEOPLE), "settled", "decided"),
        (VoteWeights(np.array([0]), np.array([1]), SPACE), "numbers", "assignment_ids"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_an_earlier_name_warns_and_returns_the_value(owner: object, old: str, new: str) -> None:
    with pytest.warns(DeprecationWarning, match=rf"^{old} is deprecated: use {new}$"):
        value = getattr(owner, old)
    assert np.array_equal(value, getattr(owner, new))
