"""Campaign: every MILP backend against the oracle; a solver's mistake must never be FETA's.

    python -m campaigns.milp [--problems 2000] [--hard 300] [--seed 0]

Random problems: verdicts, farthest gaps, witness counts, with all bounds and on intervals alone. Hard ones: neurons rescaled by 2^±20 and
2^±30, margins of 1e-7, weights under 1e-9, backends that lie. Large lattices: against `exhaustive`. Real-valued sensitive attributes: against
a dense sample of counterparts.
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np

import feta
from campaigns.lattice import on_a_score, random_model, random_people
from campaigns.result import finish
from feta.arrays import Matrix, Vector
from feta.checker.admit import admit
from feta.checker.prove import prove
from feta.engine.exhaustive import ExhaustiveEngine
from feta.engine.milp.engine import MilpEngine
from feta.engine.protocol import UNLIMITED, Budget, Engine
from feta.engine.registry import engines
from feta.model import Model
from feta.rule import Threshold, Tolerance
from feta.scorer.network.network import Affine, Network
from feta.space.attribute import Attribute, Derived, Integer, Levels, Real
from tests import oracle
from tests.examples import rescaled
from tests.fakes import LIARS
from tests.strategies import EDGES, random_case

KINDS = ("2^±20", "2^±30", "margins of 1e-7", "weights under 1e-9", "liars")

# Farthest gaps are compared to this, relative.
GAP = Fraction(1, 10**6)

# Counterparts drawn where a sensitive attribute is real-valued.
SAMPLES = 60

BUDGET = Budget(seconds=20)


def wrong_answers(
    model: Model, person: Vector, engine: Engine, others: list[Vector], counts: Counter[str]
) -> list[str]:
    """Name every answer about one person that some counterparts contradict; count how they ended."""
    farthest = _farthest(model, person, others)
    differs = farthest is not None
    every = model.space.finite  # whether `others` are all there are
    wrong = []
    for kind in (feta.FairAt, feta.WorstAt):
        query = kind(model, person)
        verdict = admit(query, engine.solve(query, BUDGET), trusted=True)
        name = f"{engine.name} {kind.__name__}"
        ended = type(verdict).__name__
        match verdict:
            case feta.Fair(certificate=certificate):
                prove(certificate, query)
                if differs:
                    wrong.append(f"{name}: fair")
            case feta.Unfair(counterexample=found, optimal=optimal):
                pair = (found.person, found.counterpart)
                if not oracle.apart(model, *pair) or (every and not differs):
                    wrong.append(f"{name}: unfair")
                gap = oracle.gap(model, *pair)
                if optimal and farthest is not None and farthest - gap > GAP * farthest:
                    wrong.append(f"{name}: gap")
                ended += " optimal" * optimal
                if every and farthest is not None and not optimal and kind is feta.WorstAt:
                    ended += f", gap {'right' if farthest - gap <= GAP * farthest else 'short'}"
            case feta.Unknown(reason=reason):
                ended += f" {reason.name}"
        counts[f"{name}: {ended}"] += 1
    return wrong


def _farthest(model: Model, person: Vector, others: list[Vector]) -> Fraction | None:
    """Find the largest gap between two people treated apart; regression: between any two."""
    if not isinstance(model.rule, Tolerance):
        differs = [other for other in others if oracle.apart(model, person, other)]
        return max((oracle.gap(model, person, other) for other in differs), default=None)
    scores = [oracle.score(model, one) for one in (person, *others)]
    span = max(scores) - min(scores)
    return span if span > Fraction(model.rule.epsilon) else None


def wrong_counts(
    model: Model, person: Vector, engine: Engine, others: list[Vector], counts: Counter[str]
) -> list[str]:
    """Say where witnesses are more than there are counterparts decided so."""
    truth = Counter(oracle.decide(model, other) for other in others)
    wrong = []
    for until in ("all", "majority"):
        told = engine.tally(model, person[None, :], BUDGET, until=until)
        ended = "whole" if told.undecided[0] == 0 else "settled" if told.decided[0] else "open"
        counts[f"{engine.name} tally until {until}: {ended}"] += 1
        if any(count > truth[number] for number, count in enumerate(told.by_class[0])):
            wrong.append(f"{engine.name} tally: above the truth")
    return wrong


def problems(n_problems: int, seed: int) -> Iterator[tuple[str, Model, Vector]]:
    """Draw random problems, a third at the edge, half of them plain ReLU with a threshold."""
    for number in range(n_problems):
        rng = np.random.default_rng([seed, number])
        case = random_case(rng, EDGES[number % len(EDGES)], plain=number % 2 == 0)
        yield "random", case.model, case.people[0]


def hard_problems(n_problems: int, seed: int) -> Iterator[tuple[str, Model, Vector]]:
    """Draw problems on which solvers err."""
    for number in range(n_problems):
        rng = np.random.default_rng([seed, number, 1])
        kind = KINDS[number % len(KINDS)]
        case = random_case(rng, EDGES[number % len(EDGES)], plain=rng.random() < 0.5)
        yield kind, _bent(case.model, case.people[0], kind, rng), case.people[0]


def _bent(model: Model, person: Vector, kind: str, rng: np.random.Generator) -> Model:
    network = model.network
    if kind.startswith("2^"):
        network = rescaled(network, rng, int(kind.removeprefix("2^±")))
    elif kind == "weights under 1e-9":
        network = _shrunk(network, 2.0**-31)
    elif kind == "margins of 1e-7" and isinstance(model.rule, Threshold):
        others = oracle.counterparts(model, person)
        score = float(oracle.score(model, others[rng.integers(len(others))]))
        rule = replace(model.rule, value=score + 1e-7 * rng.choice([-1, 1]))
        return Model(model.space, network, rule)
    return Model(model.space, network, model.rule)


def _shrunk(network: Network, factor: float) -> Network:
    if not network.layers:
        first = network.first
        tables = tuple(replace(one, rows=one.rows * factor) for one in first.tables)
        slopes, bias = first.slopes * factor, first.bias * factor
        return replace(network, first=replace(first, slopes=slopes, bias=bias, tables=tables))
    *rest, last = network.layers
    return replace(network, layers=(*rest, Affine(last.weight * factor, last.bias * factor)))


def real_problems(n_problems: int, seed: int) -> Iterator[tuple[str, Model, Vector]]:
    """Draw problems whose sensitive numbers are real-valued, one or several."""
    for number in range(n_problems):
        rng = np.random.default_rng([seed, number, 2])
        case = random_case(rng, EDGES[number % len(EDGES)], plain=rng.random() < 0.5)
        space, network = case.model.space, case.model.network
        tabled = {table.column for table in network.first.tables}
        derived = {getattr(one, "source", None) for one in space.attributes}
        attributes: list[Attribute] = []
        for one in space.attributes:
            free = (
                space.columns_of(one).start not in tabled
                and one.name not in derived
                and one.width == 1
            )
            if isinstance(one, Integer) and one.sensitive and free:
                attributes.append(Real(one.name, one.low, one.high, sensitive=True))
            elif isinstance(one, Levels) and one.sensitive and free:
                attributes.append(Real(one.name, one.numbers[0], one.numbers[-1], sensitive=True))
            elif isinstance(one, Real):
                attributes.append(replace(one, sensitive=True))
            else:
                attributes.append(one)
        model = Model(feta.FeatureSpace(tuple(attributes)), network, case.model.rule)
        yield "real-valued", model, case.people[0]


def sampled(model: Model, person: Vector, rng: np.random.Generator) -> list[Vector]:
    """Draw counterparts, the corners of real-valued attributes often among them."""
    rows: Matrix = np.repeat(person[None, :], SAMPLES, axis=0)
    for one in model.space.sensitive:
        columns = model.space.columns_of(one)
        if isinstance(one, Real):
            grid = np.concatenate([[one.low, one.high] * 5, np.linspace(one.low, one.high, 9)])
            drawn = rng.choice([rng.choice(grid), rng.uniform(one.low, one.high)], SAMPLES)
            rows[:, columns.start] = np.where(
                rng.random(SAMPLES) < 0.5, rng.choice(grid, SAMPLES), drawn
            )
        elif not isinstance(one, Derived):
            rows[:, columns] = one.codes(rng.integers(0, one.n_values, SAMPLES))
    for attribute in model.space.attributes:
        if isinstance(attribute, Derived):
            source = model.space.columns_of(model.space.attribute(attribute.source)).start
            rows[:, model.space.columns_of(attribute)] = attribute.derive(rows[:, source])
    return list(rows)


def run_large(n_problems: int, chosen: list[Engine], seed: int) -> Counter[str]:
    """Try lattices of hundreds to ten thousands of counterparts, against `exhaustive`."""
    counts: Counter[str] = Counter()
    for number in range(n_problems):
        rng = np.random.default_rng([seed, number, 4])
        model = random_model(rng, plain=number % 2 == 0)
        person = random_people(rng, model, 1)[0]
        model = on_a_score(rng, model, person) if number % 3 == 0 else model
        counts["problems, large"] += 1
        for kind in (feta.FairAt, feta.WorstAt):
            query = kind(model, person)
            truth = ExhaustiveEngine().solve(query, UNLIMITED)
            for engine in chosen:
                verdict = admit(query, engine.solve(query, BUDGET), trusted=True)
                name = f"large, {engine.name} {kind.__name__}"
                wrong = type(verdict) not in (type(truth), feta.Unknown)
                ended = type(verdict).__name__
                if isinstance(verdict, feta.Unfair) and isinstance(truth, feta.Unfair):
                    short = truth.counterexample.gap - verdict.counterexample.gap
                    near = short <= float(GAP) * truth.counterexample.gap
                    ended += (
                        " optimal" if verdict.optimal else f", gap {'right' if near else 'short'}"
                    ) * (kind is feta.WorstAt)
                    wrong = wrong or (verdict.optimal and not near)
                if isinstance(verdict, feta.Unknown):
                    ended += f" {verdict.reason.name}"
                counts[f"{name}: {ended}"] += 1
                if wrong:
                    counts[f"WRONG {name}"] += 1
                    print(f"large problem {number}: {name}", file=sys.stderr)
    return counts


def run(
    drawn: Iterator[tuple[str, Model, Vector]], chosen: list[Engine], seed: int
) -> Counter[str]:
    """Try problems on every engine; count how they ended, and disagreements by name."""
    counts: Counter[str] = Counter()
    liars = [MilpEngine("liar", one) for one in LIARS]
    for number, (kind, model, person) in enumerate(drawn):
        counts[f"problems, {kind}"] += 1
        rng = np.random.default_rng([seed, number, 3])
        others = (
            oracle.counterparts(model, person)
            if model.space.finite
            else sampled(model, person, rng)
        )
        for engine in liars if kind == "liars" else chosen:
            wrong = wrong_answers(model, person, engine, others, counts)
            if model.space.finite and not isinstance(model.rule, Tolerance):
                wrong += wrong_counts(model, person, engine, others, counts)
            for name in wrong:
                counts[f"WRONG {kind}: {name}"] += 1
                print(f"problem {number} ({kind}): {name}", file=sys.stderr)
    return counts


def main() -> int:
    """Run from the command line; exit 1 on any disagreement."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=int, default=2000)
    parser.add_argument("--hard", type=int, default=300)
    parser.add_argument("--real", type=int, default=200)
    parser.add_argument("--large", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    here = [one for one in engines().values() if isinstance(one, MilpEngine) and one.available()]
    for one in engines().values():
        if isinstance(one, MilpEngine) and not one.available():
            print(f"skipped: {one.name}, since {one.backend.package} is not installed")
    chosen: list[Engine] = [*here]
    # The same on intervals alone: there a solver's word is all there is, and must stay Unknown.
    chosen += [
        MilpEngine(f"{one.name} alone", one.backend, bounds="interval", max_cells=1) for one in here
    ]
    started = time.perf_counter()
    counts = run(problems(options.problems, options.seed), chosen, options.seed)
    counts += run(hard_problems(options.hard, options.seed), chosen, options.seed)
    counts += run_large(options.large, [*here], options.seed)
    counts += run(real_problems(options.real, options.seed), chosen, options.seed)
    return finish(counts, started)


if __name__ == "__main__":
    sys.exit(main())
