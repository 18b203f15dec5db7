"""Vote weights: a table of people whose sensitive values, as often as they occur, are the votes."""

from collections import Counter
from pathlib import Path

import numpy as np

from feta.io.table_file import TableFile
from feta.io.table_options import TableOptions
from feta.space.feature_space import FeatureSpace
from feta.space.vote_weights import VoteWeights


def read_vote_weights(
    path: Path | None, space: FeatureSpace, options: TableOptions
) -> VoteWeights | None:
    """Count the sensitive values of a table's people; its other columns are not read."""
    if path is None:
        return None
    sensitive = FeatureSpace(space.sensitive)  # their lattice is the whole space's
    table = TableFile(path, options)
    names = [attribute.name for attribute in sensitive.attributes]
    table.require(names)
    votes: Counter[int] = Counter()
    for chunk in table.chunks(set(names), typed=table.formats(names)):
        found = VoteWeights.from_people(sensitive, chunk.encode(sensitive))
        votes.update(dict(zip(found.assignment_ids.tolist(), found.votes.tolist(), strict=True)))
    numbers = np.array(sorted(votes), dtype=np.int64)
    return VoteWeights(numbers, np.array([votes[one] for one in numbers.tolist()]), sensitive)
