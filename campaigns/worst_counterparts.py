"""Campaign of the worst counterparts, which training uses, against the exact oracle.

    python -m campaigns.worst_counterparts [--networks 3000] [--seed 0]

Integers: the counterpart must be equal, the first one if several have the same score, also with a
score to reach that is equal or one ulp away. One real number: the score must be within 1e-9
(relative) of the best one, and the kernel's bounds must enclose it. Half of the networks have
weights in eighths, so that ties are exact.
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
from feta.scorer.native import is_built
from feta.scorer.network import native_kernel
from feta.scorer.network.layers import Columns
from feta.space.attribute import Integer
from feta.space.feature_space import FeatureSpace
from feta.train.worst_counterparts import worst_counterparts
from tests import oracle
from tests.strategies import random_network, random_person, random_space

# Largest distance of a real-valued search from the best score, relative to 1 + |score|.
NEAR = Fraction(1, 10**9)


def wrong_integers(model: Model, people: Matrix, *, upward: bool) -> int:
    """Count people whose counterpart is not the first with the highest (or lowest) score."""
    rows, _ = worst_counterparts(model.space, model.network, people, np.full(len(people), upward))
    wrong = 0
    for person, row in zip(people, rows, strict=True):
        others = oracle.counterparts(model, person)
        scores = [oracle.score(model, other) for other in others]
        expected = others[scores.index(max(scores) if upward else min(scores))]
        wrong += row.tolist() != expected.tolist()
    return wrong


def wrong_reaching(model: Model, people: Matrix, *, upward: bool, toward: float) -> int:
    """Count people whose worst counterpart reaches a given score and is not found.

    The score is that of the first person's worst counterpart, or the next float `toward` a value.
    """
    up = np.full(len(people), upward)
    rows, scores = worst_counterparts(model.space, model.network, people, up)
    beyond = float(np.nextafter(scores[0], toward) if toward else scores[0])
    reached, _ = worst_counterparts(model.space, model.network, people, up, beyond=beyond)
    wrong, sign = 0, 1 if upward else -1
    for row, expected in zip(reached, rows, strict=True):
        reaches = sign * oracle.score(model, expected) >= sign * Fraction(beyond)
        wrong += reaches and row.tolist() != expected.tolist()
    return wrong


def wrong_real(model: Model, person: Vector, *, upward: bool) -> int:
    """Return 1 if the score found along the real axis is not close to the best one, else 0."""
    direction = np.array([upward])
    _, scores = worst_counterparts(
        model.space, model.network, person[None, :], direction, numbers="real"
    )
    best = oracle.highest_along(model, person, "age", upward=upward)
    return int(abs(Fraction(float(scores[0])) - best) > NEAR * (1 + abs(best)))


def wrong_bounds(model: Model, person: Vector, *, upward: bool) -> int:
    """Return 1 if the kernel's bounds do not enclose the best score along the real axis, else 0."""
    network, lattice = model.network, model.space.lattice
    assert is_built()
    assert native_kernel.fits(network, model.space.magnitudes)
    axes: list[native_kernel.AxisTerms] = []
    for axis in lattice.axes:
        if axis.attribute.name == "age":
            ends, slopes = axis.every_code[[0, -1], 0], network.first.slopes[:, axis.columns[0]]
            axes.append(native_kernel.RealTerms(float(ends[0]), float(ends[1]), slopes))
        else:
            axes.append(network.first.terms(axis.every_code, axis.columns))
    kernel = native_kernel.kernel_of(network, axes)
    kernel.finish(True)
    shared = [c for c in range(model.space.width) if c not in lattice.columns]
    values, sizes = network.first.terms(person[None, shared], shared)
    constants, magnitudes = np.ascontiguousarray(values), np.ascontiguousarray(sizes)
    sign, floor = np.array([1.0 if upward else -1.0]), np.array([-np.inf])
    results = kernel.worst_real(constants, magnitudes, sign, floor, -1.0, 0, 1)
    best = oracle.highest_along(model, person, "age", upward=upward) * (1 if upward else -1)
    lower = Fraction(float(results.best_scores[0]))
    upper = Fraction(float(results.upper_bounds[0]))
    near = NEAR * (1 + abs(best))
    return int(not (best <= upper <= best + near and best - near <= lower <= best + near))


def with_searchable_age(space: FeatureSpace) -> FeatureSpace:
    """Return the space with an age that is never missing and has no derived attributes."""
    return FeatureSpace(
        tuple(
            replace(attribute, missing=False)
            if attribute.name == "age" and isinstance(attribute, Integer)
            else attribute
            for attribute in space.attributes
            if attribute.kind != "derived"
        )
    )


def run(networks: int, seed: int) -> Counter[str]:
    """Check this many networks, each with integers and with a real number."""
    counts: Counter[str] = Counter()
    for number in range(networks):
        rng = np.random.default_rng([seed, number])
        space, upward = random_space(rng), bool(rng.random() < 0.5)
        model = Model(space, random_network(rng, space, plain=False), Tolerance(0.0))
        people = np.stack([random_person(rng, space) for _ in range(3)])
        counts["people, integers"] += len(people)
        counts["WRONG integers"] += wrong_integers(model, people, upward=upward)
        toward = float(rng.choice([-np.inf, 0.0, np.inf]))
        counts["WRONG integers, a score to reach"] += wrong_reaching(
            model, people, upward=upward, toward=toward
        )
        space = with_searchable_age(space)
        network = random_network(rng, space, plain=False)
        network = replace(network, first=Columns(network.first.bias, network.first.slopes))
        person = random_person(rng, space)
        assert isinstance(space.attribute("age"), Integer)
        counts["people, a real number"] += 1
        counts["WRONG real number"] += wrong_real(
            Model(space, network, Tolerance(0.0)), person, upward=upward
        )
        counts["WRONG bounds, a real number"] += wrong_bounds(
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
