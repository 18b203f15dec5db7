"""S4: a fair decision is a pure function of the columns that are not sensitive."""

import hashlib

import numpy as np
from threadpoolctl import threadpool_limits

import feta
from tests.strategies import random_case


def test_decisions_depend_on_neither_batch_threads_order_nor_counterpart() -> None:
    """The campaign `campaigns.invariance` compares 10^5 decisions on German credit."""
    case = random_case(np.random.default_rng(3), "tie")
    model = case.model
    people = np.concatenate(
        [np.concatenate(list(model.space.lattice.counterparts(person))) for person in case.people]
    )
    predictor = feta.FairPredictor(model)
    hashes = set()
    for threads in (1, 2):
        with threadpool_limits(threads):
            for batch in (1, 7, len(people)):
                order = np.random.default_rng(batch).permutation(len(people))
                decisions = np.zeros(len(people), dtype=bool)
                for start in range(0, len(people), batch):
                    rows = order[start : start + batch]
                    decisions[rows] = predictor.decide(people[rows])
                hashes.add(hashlib.sha256(decisions.tobytes()).hexdigest())
    assert len(hashes) == 1
