"""Relations compared with an oracle that lists the related people itself."""

import numpy as np
import pytest

from campaigns.relations import ENGINES, KINDS


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", KINDS)
def test_answers_match_the_oracle(kind: str, engine: str) -> None:
    names: set[str] = set()
    for seed in range(30):
        found = KINDS[kind](np.random.default_rng([9, seed]), engine)
        assert [name for name in found if name.startswith("WRONG")] == []
        names.update(found)
    assert {"verdicts: Fair", "verdicts: Unfair"} <= names
