"""Campaign of all MILP backends against the oracle: a solver's error must not be FETA's.

    python -m campaigns.milp [--problems 2000] [--hard 300] [--seed 0]

It checks verdicts, worst gaps and witness counts of random problems, with all bounds and with
intervals only. Hard problems have neurons rescaled by 2^±20 and 2^±30, margins of 1e-7, weights
under 1e-9, or backends that lie. Large lattices are compared with `exhaustive`, real-valued
sensitive attributes with a dense sample of counterparts.
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
from feta.rule import Threshold
from feta.scorer.network.layers import Affine
from feta.scorer.network.network import Network
from feta.space.attribute import Attribute, Derived, Integer, Levels, Real
from tests import oracle
from tests.examples import rescaled
from tests.fakes import LIARS
from tests.strategies import EDGES, random_case

KINDS = ("2^±20", "2^±30", "margins of 1e-7", "weights under 1e-9", "liars")

# Relative tolerance of worst gaps.
GAP_TOLERANCE = Fraction(1, 10**6)

# Counterparts drawn if a sensitive attribute is real-valued.
SAMPLES = 60

BUDGET = Budget(seconds=20)


def wrong_verdicts(
    model: Model, person: Vector, engine: Engine, others: list[Vector], counts: Counter[str]
) -> list[str]:
    """Name every result for one person that the counterparts contradict; count the results."""
    worst = _worst_gap(model, person, others)
    differs = worst is not None
    complete = model.space.finite  # whether `others` are all counterparts
    wrong = []
    for kind in (feta.FairAt, feta.WorstAt):
        query = kind(model, person)
        verdict = admit(query, engine.solve(query, BUDGET), trusted=True)
        name = f"{engine.name} {kind.__name__}"
        outcome = type(verdict).__name__
        match verdict:
            case feta.Fair(certificate=certificate):
                prove(certificate, query)
                if differs:
                    wrong.append(f"{name}: fair")
            case feta.Unfair(counterexample=counterexample, optimal=optimal):
                pair = (counterexample.person, counterexample.counterpart)
                if not oracle.differs(model, *pair) or (complete and not differs):
                    wrong.append(f"{name}: unfair")
                gap = oracle.gap(model, *pair)
                if optimal and worst is not None and worst - gap > GAP_TOLERANCE * worst:
                    wrong.append(f"{name}: gap")
                outcome += " optimal" * optimal
                if complete and worst is not None and not optimal and kind is feta.WorstAt:
                    outcome += (
                        f", gap {'right' if worst - gap <= GAP_TOLERANCE * worst else 'short'}"
                    )
            case feta.Unknown(reason=reason):
                outcome += f" {reason.name}"
        counts[f"{name}: {outcome}"] += 1
    return wrong


def _worst_gap(model: Model, person: Vector, others: list[Vector]) -> Fraction | None:
    """Return the largest gap to a counterpart with another decision; regression: of any two."""
    if model.rule.tolerance is None:
        differs = [other for other in others if oracle.differs(model, person, other)]
        return max((oracle.gap(model, person, other) for other in differs), default=None)
    scores = [oracle.score(model, counterpart) for counterpart in (person, *others)]
    span = max(scores) - min(scores)
    return span if span > Fraction(model.rule.tolerance) else None


def wrong_counts(
    model: Model, person: Vector, engine: Engine, others: list[Vector], counts: Counter[str]
) -> list[str]:
    """Name tallies that count more counterparts of a class than exist."""
    truth = Counter(oracle.decide(model, other) for other in others)
    wrong = []
    for until in ("all", "majority"):
        tally = engine.tally(model, person[None, :], BUDGET, until=until)
        undecided = "decided" if tally.decided[0] else "undecided"
        outcome = "complete" if tally.undecided[0] == 0 else undecided
        counts[f"{engine.name} tally until {until}: {outcome}"] += 1
        if any(count > truth[number] for number, count in enumerate(tally.by_class[0])):
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
        yield kind, _harden(case.model, case.people[0], kind, rng), case.people[0]


def _harden(model: Model, person: Vector, kind: str, rng: np.random.Generator) -> Model:
    network = model.network
    if kind.startswith("2^"):
        network = rescaled(network, rng, int(kind.removeprefix("2^±")))
    elif kind == "weights under 1e-9":
        network = _shrink(network, 2.0**-31)
    elif kind == "margins of 1e-7" and isinstance(model.rule, Threshold):
        others = oracle.counterparts(model, person)
        score = float(oracle.score(model, others[rng.integers(len(others))]))
        rule = replace(model.rule, value=score + 1e-7 * rng.choice([-1, 1]))
        return Model(model.space, network, rule)
    return Model(model.space, network, model.rule)


def _shrink(network: Network, factor: float) -> Network:
    if not network.layers:
        first = network.first
        tables = tuple(replace(table, rows=table.rows * factor) for table in first.tables)
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
        tabulated = {table.column for table in network.first.tables}
        sources = {getattr(attribute, "source", None) for attribute in space.attributes}
        attributes: list[Attribute] = []
        for attribute in space.attributes:
            searchable = (
                space.columns_of(attribute).start not in tabulated
                and attribute.name not in sources
                and attribute.width == 1
            )
            if isinstance(attribute, Integer) and attribute.sensitive and searchable:
                attributes.append(
                    Real(attribute.name, attribute.low, attribute.high, sensitive=True)
                )
            elif isinstance(attribute, Levels) and attribute.sensitive and searchable:
                attributes.append(
                    Real(
                        attribute.name, attribute.numbers[0], attribute.numbers[-1], sensitive=True
                    )
                )
            elif isinstance(attribute, Real):
                attributes.append(replace(attribute, sensitive=True))
            else:
                attributes.append(attribute)
        model = Model(feta.FeatureSpace(tuple(attributes)), network, case.model.rule)
        yield "real-valued", model, case.people[0]


def sample_counterparts(model: Model, person: Vector, rng: np.random.Generator) -> list[Vector]:
    """Draw counterparts, often at the ends of real-valued attributes."""
    rows: Matrix = np.repeat(person[None, :], SAMPLES, axis=0)
    for attribute in model.space.sensitive:
        columns = model.space.columns_of(attribute)
        if isinstance(attribute, Real):
            low, high = attribute.low, attribute.high
            grid = np.concatenate([[low, high] * 5, np.linspace(low, high, 9)])
            drawn = rng.choice([rng.choice(grid), rng.uniform(low, high)], SAMPLES)
            rows[:, columns.start] = np.where(
                rng.random(SAMPLES) < 0.5, rng.choice(grid, SAMPLES), drawn
            )
        elif not isinstance(attribute, Derived):
            rows[:, columns] = attribute.codes(rng.integers(0, attribute.n_values, SAMPLES))
    for attribute in model.space.attributes:
        if isinstance(attribute, Derived):
            source = model.space.columns_of(model.space.attribute(attribute.source)).start
            rows[:, model.space.columns_of(attribute)] = attribute.derive(rows[:, source])
    return list(rows)


def run_large(n_problems: int, tested: list[Engine], seed: int) -> Counter[str]:
    """Compare with `exhaustive` on lattices of hundreds to tens of thousands of counterparts."""
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
            for engine in tested:
                verdict = admit(query, engine.solve(query, BUDGET), trusted=True)
                name = f"large, {engine.name} {kind.__name__}"
                wrong = type(verdict) not in (type(truth), feta.Unknown)
                outcome = type(verdict).__name__
                if isinstance(verdict, feta.Unfair) and isinstance(truth, feta.Unfair):
                    shortfall = truth.counterexample.gap - verdict.counterexample.gap
                    near = shortfall <= float(GAP_TOLERANCE) * truth.counterexample.gap
                    outcome += (
                        " optimal" if verdict.optimal else f", gap {'right' if near else 'short'}"
                    ) * (kind is feta.WorstAt)
                    wrong = wrong or (verdict.optimal and not near)
                if isinstance(verdict, feta.Unknown):
                    outcome += f" {verdict.reason.name}"
                counts[f"{name}: {outcome}"] += 1
                if wrong:
                    counts[f"WRONG {name}"] += 1
                    print(f"large problem {number}: {name}", file=sys.stderr)
    return counts


def run(
    drawn_problems: Iterator[tuple[str, Model, Vector]], tested: list[Engine], seed: int
) -> Counter[str]:
    """Check problems on every engine; count results, and disagreements by name."""
    counts: Counter[str] = Counter()
    liars = [MilpEngine("liar", backend) for backend in LIARS]
    for number, (kind, model, person) in enumerate(drawn_problems):
        counts[f"problems, {kind}"] += 1
        rng = np.random.default_rng([seed, number, 3])
        others = (
            oracle.counterparts(model, person)
            if model.space.finite
            else sample_counterparts(model, person, rng)
        )
        for engine in liars if kind == "liars" else tested:
            wrong = wrong_verdicts(model, person, engine, others, counts)
            if model.space.finite and model.rule.tolerance is None:
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
    milp_engines = [engine for engine in engines().values() if isinstance(engine, MilpEngine)]
    for engine in milp_engines:
        if not engine.available():
            print(f"skipped: {engine.name}, because {engine.backend.package} is not installed")
    installed = [engine for engine in milp_engines if engine.available()]
    tested: list[Engine] = [*installed]
    # With intervals only, there is nothing but a solver's claim, and the verdict must be Unknown.
    tested += [
        MilpEngine(f"{engine.name} alone", engine.backend, bounds="interval", max_cells=1)
        for engine in installed
    ]
    started = time.perf_counter()
    counts = run(problems(options.problems, options.seed), tested, options.seed)
    counts += run(hard_problems(options.hard, options.seed), tested, options.seed)
    counts += run_large(options.large, [*installed], options.seed)
    counts += run(real_problems(options.real, options.seed), tested, options.seed)
    return finish(counts, started)


if __name__ == "__main__":
    sys.exit(main())
