"""Write the fair decision of a model as one ONNX file."""

import json
from pathlib import Path

import numpy as np

from feta.arrays import Counts
from feta.errors import NetworkError, SchemaError, unknown_choice
from feta.io.fair_onnx.graph import Graph, Precision
from feta.io.fair_onnx.people import SharedColumns, valid_rows
from feta.io.fair_onnx.scores import check_overflow, counterpart_scores
from feta.io.fair_onnx.votes import decide
from feta.io.regular_file import atomic_write
from feta.model import Model
from feta.rule import rule_kind
from feta.scorer.network.network import network_of
from feta.vote.mean_decision import mean_decision
from feta.vote.stored_votes import Decider, StoredVotes

# The work per person is proportional to this number; feta's own engine is faster beyond.
MAX_COUNTERPARTS = 10_000

ALTERNATIVE = "use feta serve, feta predict, or FairPredictor"


def write_fair_onnx(
    decider: Decider, path: str | Path, *, precision: Precision = "float64"
) -> SharedColumns:
    """Write the fair decision of a model with its votes; return the columns of its input.

    The graph has the input `people`, the encoded columns that are not sensitive, and the outputs
    `decision` and `sure`. Where `sure` is true, the decision is that of `FairPredictor`, for the
    number itself and for the number rounded to the format. Where it is false, the decision is not
    known and must be ignored. An existing file is replaced at once or not at all.
    """
    if precision not in ("float32", "float64"):
        problem = unknown_choice(precision, ("float32", "float64"))
        raise NetworkError(f"invalid precision: {problem}")
    model, votes = decider.model, decider.stored_votes
    _check_model(model)
    columns = SharedColumns.of(model.space)
    graph = Graph(precision)
    content = _write(graph, model, votes, columns)
    with atomic_write(Path(path)) as part:
        part.write_bytes(content)
    return columns


def _write(graph: Graph, model: Model, votes: StoredVotes, columns: SharedColumns) -> bytes:
    network = network_of(model.scorer)
    check_overflow(network, model.space.magnitudes, graph)
    mean = mean_decision(model, votes.vote, votes.level, votes.ballot)
    ids, counts = _listed_votes(model, votes)
    scores = counterpart_scores(graph, network, model.relation, columns=columns, ids=ids)
    outcome = decide(graph, scores, model, votes=counts, mean=mean)
    sure = outcome.sure
    for valid in (valid_rows(graph, columns), *scores.listed):
        sure = graph.apply("And", sure, valid)
    outputs = {"decision": outcome.decision, "sure": sure}
    proto = graph.model(outputs, width=len(columns.names), classes=model.rule.threshold is None)
    for name, value in _description(model, votes, columns, graph.precision).items():
        entry = proto.metadata_props.add()
        entry.key, entry.value = name, value
    return bytes(proto.SerializeToString())


def _listed_votes(model: Model, votes: StoredVotes) -> tuple[Counts, Counts]:
    """Return the assignments that have votes, and their votes; raise if they are too many."""
    size = model.relation.size if votes.weights is None else len(votes.weights.votes)
    if size > MAX_COUNTERPARTS:
        raise SchemaError(
            f"too many counterparts for a graph: got {size:,} per person; expected at most "
            f"{MAX_COUNTERPARTS:,}; {ALTERNATIVE}"
        )
    if votes.weights is None:
        return np.arange(size), np.ones(size, dtype=np.int64)
    return votes.weights.assignment_ids, votes.weights.votes


def _check_model(model: Model) -> None:
    """Raise, by name, for a model whose fair decision has no graph."""
    if not hasattr(model.scorer, "first"):  # a forest, or a function that can only be called
        raise NetworkError(
            f"no graph for this model: got {type(model.scorer).__name__}; expected a "
            f"piecewise-linear network; {ALTERNATIVE}"
        )
    if not model.relation.complete or not model.relation.finite:
        raise SchemaError(
            f"no graph for this relation: got {type(model.relation).__name__}; expected finitely "
            f"many counterparts, one per combination of sensitive values; {ALTERNATIVE}"
        )
    if model.rule.threshold is None and rule_kind(model.rule) != "Argmax":
        raise SchemaError(
            f"no graph for this rule: got {rule_kind(model.rule)}; expected Threshold or Argmax; "
            f"{ALTERNATIVE}"
        )


def _description(
    model: Model, votes: StoredVotes, columns: SharedColumns, precision: Precision
) -> dict[str, str]:
    """Return what the file says about itself."""
    return {
        "feta.model": model.fingerprint,
        "feta.vote": votes.vote,
        "feta.level": repr(votes.level),
        "feta.precision": precision,
        "feta.provenance": model.scorer.provenance,
        "feta.columns": json.dumps(columns.names),
        "feta.outcomes": json.dumps(model.outcomes),
    }
