"""Real-valued sensitive attributes as trees read them: between two cuts, all scores are equal."""

import numpy as np

from feta.arrays import Vector
from feta.relation.protocol import Relation
from feta.scorer.forest.trees import CUT, SET, Trees
from feta.scorer.sections import Sections
from feta.space.attribute import Real


def real_sections(trees: Trees, relation: Relation) -> Sections | None:
    """Return the intervals between the cuts of each real-valued attribute.

    None if there is no such attribute, or if a node reads one by a table of values.
    """
    levels = dict[int, Vector]()
    for index, axis in enumerate(relation.axes):
        if not isinstance(axis.attribute, Real):
            continue
        column = axis.columns[0]
        if len(axis.columns) > 1 or _is_tabled(trees, column):
            return None
        low, high = axis.attribute.low, axis.attribute.high
        cuts = trees.cut[(trees.kind == CUT) & (trees.source == column)]
        # A number goes left if it is at most the cut, so the cut belongs to the lower interval.
        inside = cuts[(cuts >= low) & (cuts < high)] + 0.0
        levels[index] = np.unique(np.append(inside, high))
    return Sections(relation.axes, levels) if levels else None


def _is_tabled(trees: Trees, column: int) -> bool:
    used = np.unique(trees.source[trees.kind == SET]).tolist()
    return any(getattr(trees.domains[index], "column", None) == column for index in used)
