"""Campaign of networks with smooth activations against balls of 2,000 bits.

    python -m campaigns.smooth [--models 2000] [--seed 0] [--points 0]

Networks are random, with one or several functions; half have a threshold within 1e-12 of a
counterpart's score. Verdicts, worst gaps, counts and decisions of each engine (the kernel, its
portable build, enumeration) are compared with the oracle over all counterparts. The checker proves
some of the verdicts. One model in ten has 2,400 counterparts, so that the kernel bounds nodes; its
answers are compared with those of enumeration. With `--points`, float64 enclosures of each function
are compared with balls of 4,000 bits at that many points.
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
from feta.engine.exhaustive import ExhaustiveEngine
from feta.engine.lattice import LatticeEngine
from feta.engine.protocol import UNLIMITED
from feta.scorer.network.smooth.activation import FACTS, Smooth
from feta.scorer.network.smooth.table import CELLS_PER_UNIT
from feta.verdict.verdict import Verdict
from tests.smooth_cases import TRUTH, SmoothCase, random_case, wide_case

# One model in this many is proved by the checker, whose fractions are slow.
PROVED = 20

# One model in this many has a large lattice.
WIDE = 10

ENGINES: dict[str, LatticeEngine | ExhaustiveEngine] = {
    "lattice": LatticeEngine(threads=1),
    "portable": LatticeEngine(threads=1, simd=False),
    "exhaustive": ExhaustiveEngine(),
}


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
        fair = len(set(truth)) == 1
        counts["fair people" if fair else "unfair people"] += 1
        for name, engine in ENGINES.items():
            verdict = engine.solve(query, UNLIMITED)
            if isinstance(verdict, feta.Unknown):
                counts[f"unknown: {verdict.reason}"] += 1
                wrong.append(f"{name}: unknown without a tie")
            elif isinstance(verdict, feta.Fair) != fair:
                wrong.append(f"{name}: verdict")
            tally = engine.tally(case.model, person[None], UNLIMITED, until="all")
            counted = int(tally.unfavorable[0]), int(tally.favorable[0])
            if counted != (truth.count(False), truth.count(True)):
                wrong.append(f"{name}: tally")
            if not fair:
                worst = engine.solve(feta.WorstAt(case.model, person), UNLIMITED)
                wrong += [f"{name}: {found}" for found in _check_worst(case, worst, rows, truth)]
        decisions = case.model.decide(np.array(rows))
        if decisions.tolist() != truth:
            wrong.append("decisions")
        if proved:
            prove(feta.verify(query), query)
            counts["verdicts proved by the checker"] += 1
    return wrong


def _check_worst(
    case: SmoothCase, verdict: Verdict, rows: list[list[float]], truth: list[bool | None]
) -> list[str]:
    if not isinstance(verdict, feta.Unfair):
        return ["worst: no pair"]
    person = verdict.counterexample.person.tolist()
    own = case.favorable(person)
    reference = case.score(person)
    gaps = [
        abs(float((case.score(row) - reference).mid()))
        for row, decision in zip(rows, truth, strict=True)
        if decision != own
    ]
    close = abs(verdict.counterexample.gap - max(gaps)) <= 1e-9 * max(1.0, *gaps)
    return [] if close else ["worst gap"]


def differences(model: feta.Model, people: np.ndarray, counts: Counter[str]) -> list[str]:
    """Name the answers of the kernel that differ from those of enumeration."""
    wrong: list[str] = []
    expected = ENGINES["exhaustive"]
    tolerance = model.rule.tolerance is not None
    for name in ("lattice", "portable"):
        engine = ENGINES[name]
        assert isinstance(engine, LatticeEngine)
        for person in people:
            counts["people with 2,400 counterparts"] += 1
            for query in (feta.FairAt(model, person), feta.WorstAt(model, person)):
                got, right = (one.solve(query, UNLIMITED) for one in (engine, expected))
                if type(got) is not type(right):
                    wrong.append(f"{name}: {type(query).__name__} of a large lattice")
                elif isinstance(got, feta.Unfair) and isinstance(query, feta.WorstAt):
                    gaps = [one.counterexample.gap for one in (got, right)]  # type: ignore[union-attr]  # both Unfair
                    if abs(gaps[0] - gaps[1]) > 1e-9 * max(1.0, *gaps):
                        wrong.append(f"{name}: worst gap of a large lattice")
        if tolerance:
            continue
        tallies = [one.tally(model, people, UNLIMITED, until="all") for one in (engine, expected)]
        if (tallies[0].by_class != tallies[1].by_class).any():
            wrong.append(f"{name}: tally of a large lattice")
        majority = engine.majority(model, people)
        if majority is not None and (majority != tallies[1].winner).any():
            wrong.append(f"{name}: majority of a large lattice")
    return wrong


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
        found = disagreements(case, counts, proved=number % PROVED == 0)
        if number % WIDE == 0:
            found += differences(*wide_case(rng, edge=number % 20 == 0), counts)
        for name in found:
            counts[f"WRONG {name}"] += 1
            print(f"model {number} (seed {options.seed}): {name}", file=sys.stderr)
    if options.points:
        check_points(options.points, options.seed, counts)
    return finish(counts, started)


if __name__ == "__main__":
    raise SystemExit(main())
