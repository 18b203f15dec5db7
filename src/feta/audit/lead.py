"""Lead: one number for each of a pair that shows why the two are treated apart."""

import numpy as np

from feta.arrays import Vector
from feta.model import Model
from feta.rule import Argmax, OneVsRest
from feta.verdict.counterexample import Counterexample


def leads(model: Model, pair: Counterexample) -> Vector:
    """Give a number for person and counterpart, to look at.

    With one score it is the score. Several classes: by how much the counterpart's class leads over
    the person's; one class against the rest: by how much it leads over the best other.
    """
    scores = pair.scores
    match model.rule:
        case Argmax():
            mine, other = pair.decisions
            return np.asarray(scores[:, other] - scores[:, mine])
        case OneVsRest(place=place):
            others = np.delete(scores, place, axis=1)
            return np.asarray(scores[:, place] - others.max(axis=1))
        case _:
            return scores
