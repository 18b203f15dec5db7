"""How forests are compared with the libraries that trained them."""

from collections import Counter

import numpy as np

import feta
from feta.arrays import Array, Matrix
from feta.scorer.forest.forest import Forest
from feta.space.feature_space import FeatureSpace

# Rows that are evaluated at once: memory grows with rows times trees.
CHUNK = 1000

ROUNDED = "decisions that the library's rounding changes, labeled sensitive"


def forest_scores(forest: Forest, people: Matrix) -> Matrix:
    """Return the replayed scores, in parts that fit in memory."""
    parts = [forest(people[start : start + CHUNK]) for start in range(0, len(people), CHUNK)]
    return np.concatenate(parts)


def count_decisions(
    space: FeatureSpace, forest: Forest, people: Matrix, labels: Array, counts: Counter[str]
) -> None:
    """Count decisions that are not the library's own.

    FETA decides by the exact sum, the library by its rounded one. If they differ, FETA must have
    labeled the decision sensitive to rounding; such people are counted apart. All others are wrong.
    """
    rule = feta.Argmax(tuple("abc")) if forest.outputs == 3 else feta.Threshold(0.0)
    model = feta.Model(space, forest, rule)
    for start in range(0, len(people), CHUNK):
        part = people[start : start + CHUNK]
        batch = model.resolve(model.points(part), model.rule)
        answers = np.asarray(model.rule.answers(batch.decisions)).astype(int)
        differs = answers != labels[start : start + CHUNK]
        counts["decisions compared"] += len(part)
        counts[ROUNDED] += int((differs & ~batch.runtime_safe).sum())
        counts["WRONG decisions"] += int((differs & batch.runtime_safe).sum())


def count_scores(report: str, scores: Array, expected: Array, counts: Counter[str]) -> None:
    """Print and count the scores that are identical."""
    same = scores.reshape(expected.shape) == expected
    print(f"{report}: {same.mean():.4%} of {same.size:,} scores", flush=True)
    counts["scores compared"] += same.size
    counts["WRONG scores"] += int((~same).sum())
