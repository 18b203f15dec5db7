"""Campaign of networks with smooth activations against balls of 2,000 bits.

    python -m campaigns.smooth [--models 2000] [--seed 0] [--points 0]

Networks are random, with one or several functions; half have a threshold within 1e-12 of a
counterpart's score. Verdicts, worst gaps, counts and decisions are compared with the oracle over
all counterparts. The checker proves some of the verdicts. With `--points`, float64 enclosures of
each function are compared with balls of 4,000 bits at that many points.
"""

import argparse
import sys
import time
from collections import Counter

import numpy as np
from flint import arb, ctx

import feta
from campaigns.result import finish
from feta.checker.prove import prove
from feta.scorer.network.smooth.activation import FACTS, Smooth
from feta.scorer.network.smooth.table import CELLS_PER_UNIT
from tests.smooth_cases import TRUTH, SmoothCase, random_case

# One model in this many is proved by the checker, whose fractions are slow.
PROVED = 20


def disagreements(case: SmoothCase, counts: Counter[str], *, proved: bool) -> list[str]:
    """Name what the oracle contradicts."""
    wrong: list[str] = []
    for person in case.people:
        rows = case.counterparts(person.tolist())
        truth = [case.favorable(row) for row in rows]
        if None in truth:
            counts["people with an exact tie"] += 1
            continue
        query = feta.FairAt(case.model, person)
        verdict = feta.verify(query)
        fair = len(set(truth)) == 1
        counts["fair people" if fair else "unfair people"] += 1
        if isinstance(verdict, feta.Unknown):
            counts[f"unknown: {verdict.reason}"] += 1
            wrong.append("unknown without a tie")
        elif isinstance(verdict, feta.Fair) != fair:
            wrong.append("verdict")
        tally = feta.tally(case.model, person[None])
        counted = int(tally.unfavorable[0]), int(tally.favorable[0])
        if counted != (truth.count(False), truth.count(True)):
            wrong.append("tally")
        decisions = case.model.decide(np.array(rows))
        if decisions.tolist() != truth:
            wrong.append("decisions")
        if not fair:
            wrong += _check_worst(case, person, rows, truth)
        if proved:
            prove(verdict, query)
            counts["verdicts proved by the checker"] += 1
    return wrong


def _check_worst(
    case: SmoothCase, person: np.ndarray, rows: list[list[float]], truth: list[bool | None]
) -> list[str]:
    own = case.favorable(person.tolist())
    reference = case.score(person.tolist())
    gaps = [
        abs(float((case.score(row) - reference).mid()))
        for row, decision in zip(rows, truth, strict=True)
        if decision != own
    ]
    verdict = feta.worst(case.model, person)
    if not isinstance(verdict, feta.Unfair):
        return ["worst: no pair"]
    close = abs(verdict.counterexample.gap - max(gaps)) <= 1e-9 * max(1.0, *gaps)
    return [] if close else ["worst gap"]


def asymptote(name: str, point: float, parameter: float) -> float:
    """Return the function far from 0, rounded."""
    if name in ("tanh", "softsign"):
        return float(np.sign(point))
    right = {"sigmoid": 1.0, "logsigmoid": 0.0, "selu": 1.0507009873554805 * point}
    left = {"celu": -parameter, "elu": -parameter, "logsigmoid": point}
    left["selu"] = -1.0507009873554805 * 1.6732632423543772
    return right.get(name, point) if point > 0 else left.get(name, 0.0)


def check_points(n_points: int, seed: int, counts: Counter[str]) -> None:
    """Compare float64 enclosures with balls: cells, their ends, tails, subnormal numbers."""
    rng = np.random.default_rng(seed)
    ends = np.arange(-45 * CELLS_PER_UNIT, 45 * CELLS_PER_UNIT + 1) / CELLS_PER_UNIT
    special = [
        0.0,
        -0.0,
        5e-324,
        -5e-324,
        1e-300,
        -1e-300,
        2.0**-1022,
        1e300,
        -1e300,
        700.0,
        -700.0,
    ]
    fixed = np.concatenate([ends, np.nextafter(ends, -99), np.nextafter(ends, 99), special])
    ctx.prec = 4000
    for name in FACTS:
        drawn = np.concatenate([rng.uniform(-45, 45, n_points), rng.normal(size=n_points // 4)])
        parameter = 1.7 if FACTS[name].positive_parameter else 1.0
        function = Smooth(name, parameter)
        points = np.concatenate([fixed, drawn])
        found = function.at(points)
        for point, value, error in zip(points, found.values, found.errors, strict=True):
            if abs(point) > 1000:  # e^1000 is no problem, e^(10^300) is one
                truth = asymptote(name, float(point), parameter)
                if not abs(truth - float(value)) <= float(error) + 4e-16 * abs(truth):
                    counts[f"WRONG {name}"] += 1
                continue
            if not abs(TRUTH[name](arb(float(point)), arb(parameter)) - arb(float(value))) <= arb(
                float(error)
            ):
                counts[f"WRONG {name}"] += 1
                print(f"{name} at {point!r}: {value!r} ± {error!r}", file=sys.stderr)
        counts[f"points of {name}"] += len(points)


def main() -> int:
    """Run from the command line; exit 1 on any disagreement."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--points", type=int, default=0)
    options = parser.parse_args()
    started, counts = time.perf_counter(), Counter[str]()
    for number in range(options.models):
        rng = np.random.default_rng([options.seed, number])
        case = random_case(rng, edge=number % 2 == 0)
        counts["models"] += 1
        for name in disagreements(case, counts, proved=number % PROVED == 0):
            counts[f"WRONG {name}"] += 1
            print(f"model {number} (seed {options.seed}): {name}", file=sys.stderr)
    if options.points:
        check_points(options.points, options.seed, counts)
    return finish(counts, started)


if __name__ == "__main__":
    raise SystemExit(main())
