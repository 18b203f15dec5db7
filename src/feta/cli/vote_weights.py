"""Vote weights from a table: the sensitive values of its people, as often as they occur."""

from collections import Counter
from pathlib import Path

import numpy as np

from feta.io.table_file import TableFile
from feta.io.table_options import TableOptions
from feta.space.feature_space import FeatureSpace
from feta.space.vote_weights import VoteWeights


def read_vote_weights(
    path: Path, space: FeatureSpace, options: TableOptions, *, least: int = 1
) -> VoteWeights:
    """Count the sensitive values of a table's people; other columns are not read.

    People of a combination that fewer than `least` have are counted with the nearest one.
    """
    sensitive = FeatureSpace(space.sensitive)  # its lattice equals that of the full space
    table = TableFile(path, options)
    names = [attribute.name for attribute in sensitive.attributes]
    table.require(names)
    votes: Counter[int] = Counter()
    for chunk in table.chunks(set(names), typed=table.formats(names)):
        weights = VoteWeights.from_people(sensitive, chunk.encode(sensitive))
        ids, counts = weights.assignment_ids.tolist(), weights.votes.tolist()
        votes.update(dict(zip(ids, counts, strict=True)))
    assignment_ids = np.array(sorted(votes), dtype=np.int64)
    counts = np.array([votes[number] for number in assignment_ids.tolist()])
    return VoteWeights.from_counts(sensitive, assignment_ids, counts, least=least)
