"""Small models of every tree library that is installed, read and compared bit for bit."""

import warnings
from collections import Counter

import numpy as np
import pytest

for package in ("lightgbm", "pandas", "sklearn", "xgboost"):
    pytest.importorskip(package)

from campaigns.forest_libraries import random_table
from campaigns.tree_bits import compare, one_hot
from campaigns.tree_sources import LIBRARIES, Part

# Of the numbers of trees: all models have the fewest.
SMALL = 1000

# Pipelines cost seconds each; tests/unit/readers/test_sklearn_trees.py has small ones.
CASES = [
    (name, native)
    for name in LIBRARIES
    for native in (True, False)
    if not (native and name.startswith("scikit-learn"))
]


@pytest.mark.parametrize(("library", "native"), CASES)
def test_scores_are_those_of_the_library_bit_for_bit(library: str, native: bool) -> None:
    table = random_table(np.random.default_rng(5))
    table = table if native else one_hot("random", table)
    counts: Counter[str] = Counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the libraries warn about tables as small as these
        for trained in LIBRARIES[library](table, Part(divisor=SMALL)):
            assert compare(table, trained, table.frame, counts) == 1, trained.name
    assert counts["scores compared"] > len(table.frame)
    assert not [name for name, count in counts.items() if count and name.startswith("WRONG")]
