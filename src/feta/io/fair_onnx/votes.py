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
    if int(votes.sum()) >= LARGEST_SUM // 2:
        raise SchemaError(
            f"too many votes for a graph: got {int(votes.sum())} per person; expected fewer than "
            f"{LARGEST_SUM // 2}; fit the weights to fewer people"
        )
    values, errors = graph.exact(scores.values), graph.exact(scores.errors)
    if mean is not None:
        return _by_mean(graph, values, errors, votes=votes, mean=mean)
    lows, highs = _score_limits(graph, values, errors, width=model.scorer.outputs)
    if model.rule.threshold is not None:
        return _by_majority(graph, lows, highs, model=model, votes=votes)
    return _by_class(graph, lows, highs, votes=votes)


def _by_majority(
    graph: Graph, lows: str, highs: str, *, model: Model, votes: Counts
) -> GraphDecision:
    """Count the scores that are provably on a side; a tie of votes is favorable."""
    threshold, total = graph.store(np.float64(model.rule.threshold)), int(votes.sum())
    above = graph.apply("Greater", _flat(graph, lows), threshold)
    below = graph.apply("Less", _flat(graph, highs), threshold)
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
    match vote:
        case GradedBallot():
            return _by_grades(graph, values, errors, votes=votes, ballot=vote, cutoff=cutoff)
        case ScoreMean():
            return _by_sum(graph, values, errors, votes=votes, cutoff=cutoff)
        case _:
            raise SchemaError(f"no graph for this vote: got {type(vote).__name__}; use feta serve")


def _by_sum(
    graph: Graph, values: str, errors: str, *, votes: Counts, cutoff: CutOff
) -> GraphDecision:
    """Bound Σ votes · score, as `ScoreMean` does; a sum that may overflow decides nothing."""
    relative, n_votes = FLOAT64.gamma(len(votes) + 2), float(votes.sum())
    flat = _flat(graph, values)
    total = _sum(graph, flat, votes)
    size = _sum(graph, graph.apply("Abs", flat), votes)
    error = graph.times(errors, np.array(n_votes * (1 + 2 * relative)), width=1)
    rounding = graph.times(size, np.array(2 * relative), width=1)
    radius = graph.plus(graph.apply("Add", error, rounding), np.array(FLOAT64.tiny))
    radius = graph.times(radius, np.array(upward(len(votes))), width=1)
    lows, highs = _interval(graph, total, _radius(graph, size, radius, width=1))
    outcome = _by_cutoff(graph, lows, highs, edge=cutoff.edge(int(n_votes)), cutoff=cutoff)
    return _only_where(graph, graph.apply("Less", size, graph.store(FLOAT64.huge)), outcome)


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
    lows, highs = _score_limits(graph, values, errors, width=1)
    grades = graph.store(ballot.grades.astype(np.float64))
    sums = [
        _sum(graph, graph.apply("Gather", grades, _cells(graph, ballot, _flat(graph, end))), votes)
        for end in (lows, highs)
    ]
    outcome = _by_cutoff(graph, *sums, edge=cutoff.edge(scale), cutoff=cutoff)
    # NaN reaches no threshold, so both of its cells are the first one.
    numbers = graph.every(graph.apply("LessOrEqual", _flat(graph, lows), _flat(graph, highs)))
    return _only_where(graph, numbers, outcome)


def _cells(graph: Graph, ballot: GradedBallot, scores: str) -> str:
    """Return the number of thresholds that each score reaches, by bisection.

    Nothing reaches NaN, so that no cell is beyond the last grade, even for infinite scores.
    """
    n_steps = len(ballot.thresholds).bit_length()
    padded = np.full(2**n_steps, np.nan)
    padded[1 : len(ballot.thresholds) + 1] = ballot.thresholds
    thresholds = graph.store(padded)
    cells = graph.store(np.zeros((1, 1), dtype=np.int64))
    for step in reversed(range(n_steps)):
        beyond = graph.apply("Add", cells, graph.store(np.int64(2**step)))
        reached = graph.apply("LessOrEqual", graph.apply("Gather", thresholds, beyond), scores)
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


def _by_class(graph: Graph, lows: str, highs: str, *, votes: Counts) -> GraphDecision:
    """Count the votes of each class; the first class wins a tie.

    A counterpart votes for a class whose lowest score exceeds the highest of every other one. Only
    the class with the largest highest score can do this, so the second largest is compared. The
    class with the most certain votes leads if it has more than the second and all uncertain ones.
    """
    rival = graph.second_largest(highs, axis=2)[1]
    wins, weights = graph.apply("Greater", lows, rival), votes.astype(np.float64)[None, :, None]
    weighted = graph.apply("Where", wins, graph.store(weights), graph.store(np.array(0.0)))
    counts = graph.apply("ReduceSum", weighted, graph.store([1]), keepdims=0)
    certain = graph.apply("ReduceSum", counts, graph.store([1]), keepdims=1)
    most, second = graph.second_largest(counts, axis=1)
    total = graph.store(np.float64(votes.sum()))
    margin = graph.apply("Sub", graph.apply("Add", most, certain), second)
    lead = graph.apply("Greater", margin, total)
    every = graph.apply("Equal", certain, total)
    decision = graph.apply("ArgMax", counts, axis=1, keepdims=0)
    return GraphDecision(decision, _row(graph, graph.apply("Or", lead, every)))


def _either(graph: Graph, favorable: str, unfavorable: str) -> GraphDecision:
    sure = graph.apply("Or", favorable, unfavorable)
    return GraphDecision(_row(graph, favorable), _row(graph, sure))


def _only_where(graph: Graph, condition: str, outcome: GraphDecision) -> GraphDecision:
    """Return an outcome that is sure only where a condition holds, too."""
    holds = graph.apply("Reshape", condition, graph.store([-1]))
    return GraphDecision(outcome.decision, graph.apply("And", outcome.sure, holds))


def _score_limits(graph: Graph, values: str, errors: str, *, width: int) -> tuple[str, str]:
    """Return the lowest and the highest score of each counterpart, (rows, counterparts, width)."""
    size = graph.apply("ReduceMax", graph.apply("Abs", values), axes=[1], keepdims=0)
    radius = _radius(graph, size, errors, width=width)
    return _interval(graph, values, graph.apply("Unsqueeze", radius, graph.store([1])))


def _radius(graph: Graph, size: str, errors: str, *, width: int) -> str:
    """Return errors (rows, width) with room for a difference with numbers up to a size."""
    widened = graph.times(errors, np.array(1 + DIFFERENCE), width=width)
    rounding = graph.times(size, np.array(DIFFERENCE), width=width)
    return graph.plus(graph.apply("Add", widened, rounding), np.array(FLOAT64.tiny))


def _interval(graph: Graph, values: str, radius: str) -> tuple[str, str]:
    return graph.apply("Sub", values, radius), graph.apply("Add", values, radius)


def _flat(graph: Graph, values: str) -> str:
    """Return the only output, (rows, counterparts)."""
    return graph.apply("Squeeze", values, graph.store([2]))


def _row(graph: Graph, values: str) -> str:
    """Return one value per row from (rows, 1)."""
    return graph.apply("Squeeze", values, graph.store([1]))


def _sum(graph: Graph, values: str, votes: Counts) -> str:
    """Return Σ votes · value over the counterparts, (rows, 1); exact for integers below 2^53."""
    return graph.apply("MatMul", values, graph.store(votes.astype(np.float64)[:, None]))
