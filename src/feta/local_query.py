"""Queries whose counterparts depend on the person, asked over a space of the person's own."""

from dataclasses import replace
from functools import lru_cache

import numpy as np

from feta.errors import EngineError
from feta.model import Model
from feta.query import PersonQuery
from feta.relation.all_sensitive_values import AllSensitiveValues

# Local models that are cached: one query asks for its own a few times.
MAX_CACHED = 32


def local_query(query: PersonQuery) -> PersonQuery:
    """Return the same question with the default relation over the person's own space."""
    relation = query.model.relation
    if query.model.rule.tolerance is not None and not relation.has_key:
        raise EngineError(
            "similar people are not compared by a tolerance: got a Tolerance, which holds for any "
            f"two counterparts, and the relation {type(relation).__name__}, in which two "
            "counterparts of a person may not be related; expected a rule with decisions"
        )
    if relation.local(query.person) is None:
        return query
    return type(query)(_local_model(query.model, query.person.tobytes()), query.person)


@lru_cache(maxsize=MAX_CACHED)
def _local_model(model: Model, person: bytes) -> Model:
    row = np.frombuffer(person, dtype=np.float64)
    space = model.relation.local(row)
    assert space is not None  # `local_query` asks first
    return replace(model, space=space, threshold=None, relation=AllSensitiveValues(space))
