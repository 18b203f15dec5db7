"""Votes of counterparts as ONNX operators: sums in float64, which are exact or bounded.

An output is `sure` where the bounds of all scores leave only one decision.
"""

from dataclasses import dataclass
from typing import assert_never

import numpy as np

from feta.arrays import Counts
from feta.errors import SchemaError
from feta.io.fair_onnx.graph import Graph
from feta.io.fair_onnx.scores import GraphScores
from feta.model import Model
from feta.rounding import DIFFERENCE, FLOAT64, upward
from feta.vote.cutoff import CutOff
from feta.vote.graded_ballot import GradedBallot
from feta.vote.mean_decision import LARGEST_SUM, MeanDecision
from feta.vote.score_mean import ScoreMean


@dataclass(frozen=True, slots=True)
class GraphDecision:
    """Names of values, (rows,): the decision, and whether it is the only possible one."""

    decision: str
    sure: str


def decide(
    graph: Graph, scores: GraphScores, model: Model, *, votes: Counts, mean: MeanDecision | None
) -> GraphDecision:
    """Add the vote of a model's counterparts."""
    values, errors = graph.exact(scores.values), graph.exact(scores.errors)
    if mean is not None:
        return _by_mean(graph, values, errors, votes=votes, mean=mean)
    if model.rule.threshold is not None:
        return _by_majority(graph, values, errors, model=model, votes=votes)
    return _by_class(graph, values, errors, votes=votes)


def _by_majority(
    graph: Graph, values: str, errors: str, *, model: Model, votes: Counts
) -> GraphDecision:
    """Count the scores that are provably on a side; a tie of votes is favorable."""
    threshold, total = model.rule.threshold, int(votes.sum())
    distance = _flat(graph, graph.apply("Sub", values, graph.store(np.float64(threshold))))
    above = graph.apply("Greater", distance, errors)
    below = graph.apply("Less", distance, graph.apply("Neg", errors))
    sides = (above, below) if model.rule.favors == "above" else (below, above)
    favorable, unfavorable = (_sum(graph, graph.numbers(side, exact=True), votes) for side in sides)
    return _either(
        graph,
        graph.apply("GreaterOrEqual", favorable, graph.store(np.float64((total + 1) // 2))),
        graph.apply("GreaterOrEqual", unfavorable, graph.store(np.float64(total // 2 + 1))),
    )


def _by_mean(
    graph: Graph, values: str, errors: str, *, votes: Counts, mean: MeanDecision
) -> GraphDecision:
    vote, cutoff = mean.vote, mean.cutoff
    if cutoff is None:
        raise SchemaError(
            "no graph for a mean of several classes or of a regression: got one; expected two "
            "decisions by a threshold, or a majority of classes; use feta serve"
        )
    scale = int(votes.sum()) * vote.unit
    match vote:
        case GradedBallot():
            return _by_grades(graph, values, errors, votes=votes, ballot=vote, cutoff=cutoff)
        case ScoreMean():
            lows, highs = _score_sums(graph, values, errors, votes)
            return _by_cutoff(graph, lows, highs, edge=cutoff.edge(scale), cutoff=cutoff)
        case _:
            raise SchemaError(f"no graph for this vote: got {type(vote).__name__}; use feta serve")


def _score_sums(graph: Graph, values: str, errors: str, votes: Counts) -> tuple[str, str]:
    """Bound Σ votes · score, as `ScoreMean` does."""
    relative, n_votes = FLOAT64.gamma(len(votes) + 2), float(votes.sum())
    flat = _flat(graph, values)
    total = _sum(graph, flat, votes)
    size = _sum(graph, graph.apply("Abs", flat), votes)
    error = graph.apply("Mul", _column(graph, errors), graph.store(n_votes * (1 + 2 * relative)))
    radius = graph.apply("Add", error, graph.apply("Mul", size, graph.store(2 * relative)))
    radius = graph.apply("Add", radius, graph.store(FLOAT64.tiny))
    radius = graph.apply("Mul", radius, graph.store(upward(len(votes))))
    return _interval(graph, total, radius)


def _by_grades(
    graph: Graph, values: str, errors: str, *, votes: Counts, ballot: GradedBallot, cutoff: CutOff
) -> GraphDecision:
    """Sum the grades of the lowest and the highest cell of each score; integers are exact."""
    scale = int(votes.sum()) * ballot.unit
    if scale >= LARGEST_SUM:
        raise SchemaError(
            f"too many votes for a graph: got {int(votes.sum())} per person; expected fewer than "
            f"{LARGEST_SUM // ballot.unit}; fit the weights to fewer people"
        )
    lows, highs = _interval(graph, _flat(graph, values), errors)
    grades = graph.store(ballot.grades.astype(np.float64))
    sums = [
        _sum(graph, graph.apply("Gather", grades, _cells(graph, ballot, end)), votes)
        for end in (lows, highs)
    ]
    return _by_cutoff(graph, *sums, edge=cutoff.edge(scale), cutoff=cutoff)


def _cells(graph: Graph, ballot: GradedBallot, scores: str) -> str:
    """Return the number of thresholds that each score reaches, by bisection."""
    n_steps = len(ballot.thresholds).bit_length()
    padded = np.full(2**n_steps - 1, np.inf)
    padded[: len(ballot.thresholds)] = ballot.thresholds
    thresholds = graph.store(padded)
    cells = graph.store(np.zeros((1, 1), dtype=np.int64))
    for step in reversed(range(n_steps)):
        beyond = graph.apply("Add", cells, graph.store(np.int64(2**step)))
        index = graph.apply("Sub", beyond, graph.store(np.int64(1)))
        reached = graph.apply("LessOrEqual", graph.apply("Gather", thresholds, index), scores)
        cells = graph.apply("Where", reached, beyond, cells)
    return cells


def _by_cutoff(
    graph: Graph, lows: str, highs: str, *, edge: float, cutoff: CutOff
) -> GraphDecision:
    """Compare bounds of sums with the last favorable float64, as `CutOff.decide` does."""
    limit = graph.store(np.float64(edge))
    match cutoff.favors:
        case "above":
            favorable = graph.apply("GreaterOrEqual", lows, limit)
            unfavorable = graph.apply("Less", highs, limit)
        case "below":
            favorable = graph.apply("LessOrEqual", highs, limit)
            unfavorable = graph.apply("Greater", lows, limit)
        case _:
            assert_never(cutoff.favors)
    return _either(graph, favorable, unfavorable)


def _by_class(graph: Graph, values: str, errors: str, *, votes: Counts) -> GraphDecision:
    """Count the votes of each class; the first class wins a tie.

    A counterpart votes for a class whose lowest score exceeds the highest of every other one. Only
    the class with the largest highest score can do this, so the second largest is compared.
    """
    spread = graph.apply("Unsqueeze", errors, graph.store([1]))
    lows, highs = _interval(graph, values, spread)
    rival = graph.second_largest(highs, axis=2)[1]
    wins = graph.numbers(graph.apply("Greater", lows, rival), exact=True)
    weighted = graph.apply("Mul", wins, graph.store(votes.astype(np.float64)[None, :, None]))
    counts = graph.apply("ReduceSum", weighted, graph.store([1]), keepdims=0)
    certain = graph.apply("ReduceSum", counts, graph.store([1]), keepdims=1)
    unknown = graph.apply("Sub", graph.store(np.float64(votes.sum())), certain)
    most, second = graph.second_largest(counts, axis=1)
    lead = graph.apply("Greater", graph.apply("Sub", most, second), unknown)
    every = graph.apply("Equal", unknown, graph.store(np.float64(0.0)))
    decision = graph.apply("ArgMax", counts, axis=1, keepdims=0)
    return GraphDecision(decision, _row(graph, graph.apply("Or", lead, every)))


def _either(graph: Graph, favorable: str, unfavorable: str) -> GraphDecision:
    sure = graph.apply("Or", favorable, unfavorable)
    return GraphDecision(_row(graph, favorable), _row(graph, sure))


def _interval(graph: Graph, values: str, errors: str) -> tuple[str, str]:
    """Return values ± errors, rounded outward."""
    size = graph.apply("Mul", graph.apply("Abs", values), graph.store(np.float64(DIFFERENCE)))
    radius = graph.apply("Mul", errors, graph.store(np.float64(1 + DIFFERENCE)))
    radius = graph.apply("Add", graph.apply("Add", radius, size), graph.store(FLOAT64.tiny))
    return graph.apply("Sub", values, radius), graph.apply("Add", values, radius)


def _flat(graph: Graph, values: str) -> str:
    """Return the only output, (rows, counterparts)."""
    return graph.apply("Squeeze", values, graph.store([2]))


def _column(graph: Graph, errors: str) -> str:
    """Return the error of the only output as a vector, (rows,)."""
    return graph.apply("Squeeze", errors, graph.store([1]))


def _row(graph: Graph, values: str) -> str:
    """Return one value per row from (rows, 1) or (rows,)."""
    return graph.apply("Reshape", values, graph.store([-1]))


def _sum(graph: Graph, values: str, votes: Counts) -> str:
    """Return Σ votes · value over the counterparts, (rows,); exact for integers below 2^53."""
    return graph.apply("MatMul", values, graph.store(votes.astype(np.float64)))
