"""Violation: which people of a batch have a counterexample, and the one that violates most.

The decisions are exact; with whole numbers so is the choice of the counterpart (see `worst_counterparts`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from feta.arrays import Flags, Matrix, Vector
from feta.rounding import FLOAT64
from feta.rule import UNDECIDED, Deciding, OneVsRest, Threshold, Tolerance, separates
from feta.scorer.network.activation import identity
from feta.scorer.network.error_bounds import Bounded, largest_error
from feta.scorer.network.exact import ExactNetwork
from feta.scorer.network.network import Affine, Network
from feta.space.feature_space import FeatureSpace
from feta.train.task import Task
from feta.train.worst_counterparts import Engine, Numbers, worst_counterparts

Search = Callable[..., tuple[Matrix, Vector]]  # `worst_counterparts` in a space


@dataclass(frozen=True, slots=True, eq=False)
class Violations:
    """What was found about each person of a batch."""

    decisions: Vector  # the person's own: a class's number, or the score
    apart: Flags  # whether the counterpart is a counterexample
    counterparts: Matrix  # the person, where there is no counterexample
    gaps: Vector  # how far on the other side it is, in scores; 0 where it is no counterexample

    # Regression: `apart` and `gaps` are of the span of all counterparts' scores, and `counterparts` is
    # the end of the span that is farther from the person's own score.


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
    """Find everybody's maximum violation (Eq. 4): the farthest counterpart on the other side.

    With `nearly`, gaps may be short by float32's rounding; who has a counterexample stays exact.
    """
    rule = task.rule
    search = partial(worst_counterparts, space, numbers=numbers, engine=engine, nearly=nearly)
    if isinstance(rule, Tolerance):
        whole = partial(search, nearly=False)  # a distance has no side to be on for sure
        return _distances(whole, space, network, rule.epsilon, people)
    assert not isinstance(rule, OneVsRest)  # refused by the task
    scores, error = network(people), largest_error(network, space.magnitudes, FLOAT64)
    own = _decided(network, rule, people, scores, error)
    if isinstance(rule, Threshold):
        upward = (own == 1) != (rule.favors == "above")
        rows, found = search(network, people, upward, beyond=rule.value)
        gaps, theirs = np.abs(found - scores[:, 0]), found[:, None]
    else:
        rows, gaps = _margins(
            search, network, people, own, lambda x: _decided(network, rule, x, network(x), error)
        )
        theirs = network(rows)
    apart = _decided(network, rule, rows, theirs, error) != own
    return Violations(
        own, apart, np.where(apart[:, None], rows, people), np.where(apart, gaps, 0.0)
    )


def _decided(
    network: Network, rule: Deciding, people: Matrix, scores: Matrix, error: float
) -> Vector:
    """Decide exactly: by float64 scores and their error bound, without rounding where that fails."""
    decisions = rule.decide(Bounded(scores, np.full_like(scores, error)))
    rest = np.flatnonzero(decisions == UNDECIDED)
    if rest.size:
        decisions[rest] = rule.decide_exactly(ExactNetwork(network).scores(people[rest]))
    return decisions.astype(np.float64)


def _margins(
    search: Search,
    network: Network,
    people: Matrix,
    own: Vector,
    decide: Callable[[Matrix], Vector],
) -> tuple[Matrix, Vector]:
    """Find where another class leads most over the person's own, whichever class that is.

    Leads are float64; whoever is decided apart, exactly, comes before those who are not.
    """
    rows, best = np.array(people), np.full(len(people), -np.inf)
    apart = np.zeros(len(people), dtype=bool)
    for mine in np.unique(own).astype(int):
        members = np.flatnonzero(own == mine)
        for other in range(network.outputs):
            if other != mine:
                direction = np.zeros((1, network.outputs))
                direction[0, [other, mine]] = 1.0, -1.0  # ±1: exact products
                lead = network.then(identity(), Affine(direction, np.zeros(1)))
                up = np.ones(len(members), dtype=bool)
                found, scores = search(lead, people[members], up, beyond=0.0)
                here, before = decide(found) != mine, apart[members]
                higher = np.where(here == before, scores > best[members], here)
                moved = members[higher]
                rows[moved], best[moved], apart[moved] = found[higher], scores[higher], here[higher]
    return rows, best


def _distances(
    search: Search, space: FeatureSpace, network: Network, epsilon: float, people: Matrix
) -> Violations:
    """Find the span of each person's counterparts, and its end farther from the person's own score."""
    own = network(people)[:, 0]
    up = np.ones(len(people), dtype=bool)
    high, above = search(network, people, up)
    low, below = search(network, people, ~up)
    rows = np.where((above - own >= own - below)[:, None], high, low)
    spans, rule = above - below, Tolerance(epsilon)
    error = 4 * largest_error(network, space.magnitudes, FLOAT64)
    apart = spans > epsilon
    for row in np.flatnonzero(~(np.abs(spans - epsilon) > error)):
        ends = ExactNetwork(network).scores(np.stack([low[row], high[row]]))
        apart[row] = separates(rule, ends)
    return Violations(own, apart, rows, np.where(apart, spans, 0.0))
