"""Campaign: the counterparts that training uses against the oracle in fractions.

    python -m campaigns.farthest [--networks 3000] [--seed 0]

Whole numbers: the very counterpart, the first of equals, also where it must reach a score that lies
on it or an ulp beside. One real number: a score within 1e-9 (relative) of the best bend, and the
kernel's bounds on both sides of it. Half of the networks have weights in eighths, where ties are exact.
"""

import argparse
import sys
import time
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np

from campaigns.result import finish
from feta.arrays import Matrix, Vector
from feta.model import Model
from feta.rule import Tolerance
from feta.scorer.network import native_kernel
from feta.scorer.network.network import Columns
from feta.space.attribute import Integer
from feta.space.feature_space import FeatureSpace
from feta.train.worst_counterparts import worst_counterparts
from tests import oracle
from tests.strategies import random_network, random_person, random_space

# How near the best bend a real-valued search must come, relative to 1 + |score|.
NEAR = Fraction(1, 10**9)


def wrong_whole(model: Model, people: Matrix, *, upward: bool) -> int:
    """Count people whose counterpart is not the first of the highest (or lowest)."""
    rows, _ = worst_counterparts(model.space, model.network, people, np.full(len(people), upward))
    wrong = 0
    for person, row in zip(people, rows, strict=True):
        others = oracle.counterparts(model, person)
        scores = [oracle.score(model, other) for other in others]
        due = others[scores.index(max(scores) if upward else min(scores))]
        wrong += row.tolist() != due.tolist()
    return wrong


def wrong_reaching(model: Model, people: Matrix, *, upward: bool, beside: float) -> int:
    """Count people whose counterpart reaches a score, at one of them or next to it, and is not found."""
    up = np.full(len(people), upward)
    rows, scores = worst_counterparts(model.space, model.network, people, up)
    beyond = float(np.nextafter(scores[0], beside) if beside else scores[0])
    found, _ = worst_counterparts(model.space, model.network, people, up, beyond=beyond)
    wrong, sign = 0, 1 if upward else -1
    for row, due in zip(found, rows, strict=True):
        reaches = sign * oracle.score(model, due) >= sign * Fraction(beyond)
        wrong += reaches and row.tolist() != due.tolist()
    return wrong


def wrong_real(model: Model, person: Vector, *, upward: bool) -> int:
    """Count one if the score found along the real numbers is not near the best there is."""
    direction = np.array([upward])
    _, scores = worst_counterparts(
        model.space, model.network, person[None, :], direction, numbers="real"
    )
    best = oracle.highest_along(model, person, "age", upward=upward)
    return int(abs(Fraction(float(scores[0])) - best) > NEAR * (1 + abs(best)))


def wrong_bounds(model: Model, person: Vector, *, upward: bool) -> int:
    """Count one if the kernel's bounds on the best score along the real numbers do not hold it."""
    network, lattice = model.network, model.space.lattice
    assert native_kernel.native is not None
    assert native_kernel.fits(network, model.space.magnitudes)
    axes: list[native_kernel.Axis] = []
    for axis in lattice.axes:
        if axis.attribute.name == "age":
            ends, slopes = axis.every_code[[0, -1], 0], network.first.slopes[:, axis.columns[0]]
            axes.append(native_kernel.RealAxis(float(ends[0]), float(ends[1]), slopes))
        else:
            axes.append(network.first.terms(axis.every_code, axis.columns))
    kernel = native_kernel.kernel_of(network, axes)
    kernel.finish(True)
    shared = [c for c in range(model.space.width) if c not in lattice.columns]
    terms = map(np.ascontiguousarray, network.first.terms(person[None, shared], shared))
    sign, floor = np.array([1.0 if upward else -1.0]), np.array([-np.inf])
    told = kernel.worst_real(*terms, sign, floor, -1.0, 0, 1)
    best = oracle.highest_along(model, person, "age", upward=upward) * (1 if upward else -1)
    least, most = (Fraction(float(told[name][0])) for name in ("least", "most"))
    near = NEAR * (1 + abs(best))
    return int(not (best <= most <= best + near and best - near <= least <= best + near))


def with_a_line(space: FeatureSpace) -> FeatureSpace:
    """Leave age as the widest whole number, never missing, with nothing derived from it."""
    return FeatureSpace(
        tuple(
            replace(one, missing=False) if one.name == "age" and isinstance(one, Integer) else one
            for one in space.attributes
            if one.kind != "derived"
        )
    )


def run(networks: int, seed: int) -> Counter[str]:
    """Try this many networks, each with whole numbers and with a real one."""
    counts: Counter[str] = Counter()
    for number in range(networks):
        rng = np.random.default_rng([seed, number])
        space, upward = random_space(rng), bool(rng.random() < 0.5)
        model = Model(space, random_network(rng, space, plain=False), Tolerance(0.0))
        people = np.stack([random_person(rng, space) for _ in range(3)])
        counts["people, whole numbers"] += len(people)
        counts["WRONG whole numbers"] += wrong_whole(model, people, upward=upward)
        beside = float(rng.choice([-np.inf, 0.0, np.inf]))
        counts["WRONG whole numbers, a score to reach"] += wrong_reaching(
            model, people, upward=upward, beside=beside
        )
        space = with_a_line(space)
        network = random_network(rng, space, plain=False)
        network = replace(network, first=Columns(network.first.bias, network.first.slopes))
        person = random_person(rng, space)
        assert isinstance(space.attribute("age"), Integer)
        counts["people, a real number"] += 1
        counts["WRONG real number"] += wrong_real(
            Model(space, network, Tolerance(0.0)), person, upward=upward
        )
        counts["WRONG bounds along a real number"] += wrong_bounds(
            Model(space, network, Tolerance(0.0)), person, upward=upward
        )
    return counts


def main() -> int:
    """Run from the command line; exit 1 on any disagreement."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--networks", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    started = time.perf_counter()
    return finish(run(options.networks, options.seed), started)


if __name__ == "__main__":
    sys.exit(main())
