"""Worst counterexamples of a batch of people.

The decisions are exact. With integer values, so is the choice of the counterpart (see
`worst_counterparts`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from feta.arrays import Flags, Matrix, Vector
from feta.rounding import FLOAT64
from feta.rule import UNDECIDED, Rule
from feta.scorer.exact_scores import ExactScores
from feta.scorer.network.activation import identity
from feta.scorer.network.error_bounds import largest_error
from feta.scorer.network.exact import ExactNetwork
from feta.scorer.network.layers import Affine
from feta.scorer.network.network import Network
from feta.scorer.protocol import Enclosure
from feta.space.feature_space import FeatureSpace
from feta.train.task import Task
from feta.train.worst_counterparts import Engine, Numbers, worst_counterparts

Search = Callable[..., tuple[Matrix, Vector]]  # `worst_counterparts` in a space


@dataclass(frozen=True, slots=True, eq=False)
class Violations:
    """The worst counterpart of each person of a batch.

    Regression: `differs` and `gaps` describe the span of all counterparts' scores, and
    `counterparts` is the end of the span that is farther from the person's score.
    """

    decisions: Vector  # of the person: the index of a class, or the score
    differs: Flags  # whether the counterpart is a counterexample
    counterparts: Matrix  # the person itself, if there is no counterexample
    gaps: Vector  # difference of the scores; 0 without a counterexample


def violations(
    space: FeatureSpace,
    network: Network,
    task: Task,
    people: Matrix,
    *,
    numbers: Numbers,
    engine: Engine = "auto",
    nearly: bool = False,
) -> Violations:
    """Find everybody's maximum violation (Eq. 4): the worst counterpart on the other side.

    With `nearly`, gaps may be too small by float32's rounding; who has a counterexample is exact.
    """
    rule = task.rule
    search = partial(worst_counterparts, space, numbers=numbers, engine=engine, nearly=nearly)
    if rule.tolerance is not None:
        exact = partial(search, nearly=False)  # a span has no threshold to be provably beyond
        return _spans(exact, network, people, space=space, rule=rule, epsilon=rule.tolerance)
    scores, error = network(people), largest_error(network, space.magnitudes, FLOAT64)
    reference = _decide(network, rule, people, scores, error)
    if rule.threshold is not None:
        upward = (reference == 1) != (rule.favors == "above")
        rows, extremes = search(network, people, upward, beyond=rule.threshold)
        gaps, counterpart_scores = np.abs(extremes - scores[:, 0]), extremes[:, None]
    else:
        rows, gaps = _margins(
            search,
            network,
            people,
            reference,
            lambda x: _decide(network, rule, x, network(x), error),
        )
        counterpart_scores = network(rows)
    differs = _decide(network, rule, rows, counterpart_scores, error) != reference
    return Violations(
        reference, differs, np.where(differs[:, None], rows, people), np.where(differs, gaps, 0.0)
    )


def _decide(network: Network, rule: Rule, people: Matrix, scores: Matrix, error: float) -> Vector:
    """Decide exactly: by float64 scores and their error bound, otherwise by exact arithmetic."""
    decisions = rule.decide(Enclosure(scores, np.full_like(scores, error)))
    rest = np.flatnonzero(decisions == UNDECIDED)
    if rest.size:
        decisions[rest] = rule.decide_exactly(_exact(network, people[rest]))
    return decisions.astype(np.float64)


def _exact(network: Network, people: Matrix) -> ExactScores:
    return ExactScores(ExactNetwork(network).scores(people))


def _margins(
    search: Search,
    network: Network,
    people: Matrix,
    reference: Vector,
    decide: Callable[[Matrix], Vector],
) -> tuple[Matrix, Vector]:
    """Find the counterpart with the largest margin of another class over the person's class.

    Margins are float64; a counterpart with a different exact decision precedes all others.
    """
    rows, best = np.array(people), np.full(len(people), -np.inf)
    differs = np.zeros(len(people), dtype=bool)
    for mine in np.unique(reference).astype(int):
        members = np.flatnonzero(reference == mine)
        for other in range(network.outputs):
            if other != mine:
                direction = np.zeros((1, network.outputs))
                direction[0, [other, mine]] = 1.0, -1.0  # ±1: exact products
                margin = network.then(identity(), Affine(direction, np.zeros(1)))
                up = np.ones(len(members), dtype=bool)
                candidates, scores = search(margin, people[members], up, beyond=0.0)
                now, before = decide(candidates) != mine, differs[members]
                higher = np.where(now == before, scores > best[members], now)
                moved = members[higher]
                rows[moved], best[moved] = candidates[higher], scores[higher]
                differs[moved] = now[higher]
    return rows, best


def _spans(
    search: Search,
    network: Network,
    people: Matrix,
    *,
    space: FeatureSpace,
    rule: Rule,
    epsilon: float,
) -> Violations:
    """Find the span of each person's counterparts, and its end farther from the person's score."""
    reference = network(people)[:, 0]
    up = np.ones(len(people), dtype=bool)
    high, above = search(network, people, up)
    low, below = search(network, people, ~up)
    rows = np.where((above - reference >= reference - below)[:, None], high, low)
    spans = above - below
    error = 4 * largest_error(network, space.magnitudes, FLOAT64)
    differs = spans > epsilon
    for row in np.flatnonzero(~(np.abs(spans - epsilon) > error)):
        differs[row] = rule.separates(_exact(network, np.stack([low[row], high[row]])))
    return Violations(reference, differs, rows, np.where(differs, spans, 0.0))
