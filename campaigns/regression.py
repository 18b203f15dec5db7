"""Campaign of tolerances against the exact span of all counterparts' scores.

    python -m campaigns.regression [--models 1000] [--seed 0]

Every model is queried with five tolerances: the span, the next float64 below and above it, 0 and a
random one. Queries for several counterparts of one person must give the same result. Some models
are also checked with MILP, some have a real-valued sensitive attribute.
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

import feta
from campaigns.result import finish
from feta.arrays import Matrix, Vector
from feta.checker.prove import prove
from feta.model import Model
from feta.scorer.network.activation import Activation
from feta.space.attribute import Attribute, Categorical, Derived, Integer, Levels, Real
from feta.space.feature_space import FeatureSpace
from feta.verdict.verdict import Verdict
from tests import oracle
from tests.strategies import random_network, random_person, random_space

if TYPE_CHECKING:
    from feta.space.records import Record

# One of so many models is checked with MILP, has a real-valued attribute, or is audited.
MILP_EVERY, REAL_EVERY, AUDIT_EVERY = 10, 5, 2

# Counterparts of one person that are queried in addition to the person.
N_QUERIED = 2

# A real-valued span is attained between two float64 numbers; closer than this (relative),
# Unknown is allowed. "Optimal" guarantees the same.
NEAR = Fraction(1, 10**9)
TINY = Fraction(1, 10**290)

# At the edge, the search along a real-valued attribute would only end at the engine's limit.
REAL_BUDGET = feta.Budget(evaluations=2**12)


@dataclass(frozen=True)
class Case:
    """A person's counterparts, listed from the attributes themselves, and their exact scores."""

    model: Model
    person: Vector
    others: Matrix
    scores: list[Fraction]

    @property
    def span(self) -> Fraction:
        """The highest score minus the lowest."""
        return max(self.scores) - min(self.scores)

    def queried(self, rng: np.random.Generator) -> list[Vector]:
        """Return the person and some of the counterparts."""
        return [self.person, *self.others[rng.integers(len(self.others), size=N_QUERIED)]]


def values_of(attribute: Attribute) -> list[object]:
    """List an attribute's domain."""
    missing: list[object] = [None] if getattr(attribute, "missing", False) else []
    match attribute:
        case Categorical(values=values):
            return [*values, *missing]
        case Integer(low=low, high=high):
            return [*range(low, high + 1), *missing]
        case Levels(numbers=numbers):
            return [*numbers, *missing]
        case _:
            raise AssertionError(f"{attribute} has no finite domain")


def counterparts(space: FeatureSpace, person: Vector) -> Matrix:
    """Enumerate the sensitive values, and encode them by the public API."""
    record = space.decode(person)
    for attribute in space.attributes:
        if isinstance(attribute, Derived):
            del record[attribute.name]
    sensitive = [
        attribute for attribute in space.attributes if getattr(attribute, "sensitive", False)
    ]
    records: list[Record] = [
        record | dict(zip([attribute.name for attribute in sensitive], values, strict=True))
        for values in product(*map(values_of, sensitive))
    ]
    return space.encode(records)


def random_regression(rng: np.random.Generator) -> Case:
    """Draw a network with any activations on a space with missing values, categories and levels."""
    space = random_space(rng)
    model = Model(space, random_network(rng, space, plain=rng.random() < 0.5), feta.Tolerance(0.0))
    person = random_person(rng, space)
    others = counterparts(space, person)
    return Case(model, person, others, [oracle.score(model, other) for other in others])


def tolerances(rng: np.random.Generator, span: Fraction) -> Iterator[tuple[str, float]]:
    """Yield tolerances on the edge and away from it, with their names."""
    nearest = float(span)
    yield "span", nearest
    yield "ulp below", max(0.0, float(np.nextafter(nearest, -np.inf)))
    yield "ulp above", float(np.nextafter(nearest, np.inf))
    yield "zero", 0.0
    yield "random", float(rng.random() * 2 * nearest)


def wrong_verdicts(
    case: Case, epsilon: float, engine: str, rng: np.random.Generator, counts: Counter[str]
) -> Iterator[str]:
    """Name every result that the exact span contradicts, for all queried counterparts."""
    model = replace(case.model, rule=feta.Tolerance(epsilon), threshold=None)
    fair = case.span <= Fraction(epsilon)
    pairs: set[bytes] = set()
    for person in case.queried(rng):
        for kind in (feta.FairAt, feta.WorstAt):
            query = kind(model, person)
            verdict = feta.verify(query, engine=engine)
            counts[f"{engine} {kind.__name__}: {type(verdict).__name__}"] += 1
            for name in _wrong_verdict(case, query, verdict, fair=fair):
                yield f"{engine} {kind.__name__}: {name}"
            if isinstance(verdict, feta.Unfair) and verdict.optimal:
                pair = verdict.counterexample
                pairs.add(pair.person.tobytes() + pair.counterpart.tobytes())
    if engine != "milp" and len(pairs) > 1:  # MILP may find any of several equal pairs
        yield f"{engine}: another worst pair for another counterpart"


def _wrong_verdict(
    case: Case, query: feta.FairAt, verdict: Verdict, *, fair: bool
) -> Iterator[str]:
    model = query.model
    match verdict:
        case feta.Fair(certificate=certificate, runtime=runtime):
            if not fair:
                yield "fair"
            prove(certificate, query)
            if runtime == "safe" and not _in_float32(model, case.others, fair=True):
                yield "safe, but not in float32"
        case feta.Unfair():
            if fair:
                yield "unfair"
            yield from _wrong_pair(case, query, verdict)
        case feta.Unknown(reason=reason):
            yield f"unknown, {reason.name}"


def _wrong_pair(case: Case, query: feta.FairAt, verdict: feta.Unfair) -> Iterator[str]:
    model, pair = query.model, verdict.counterexample
    rows = np.stack([pair.person, pair.counterpart])
    if not all((case.others == row).all(axis=1).any() for row in rows):
        yield "the pair is not of this person"
    low, high = (oracle.score(model, row) for row in rows)
    if not high - low > epsilon_of(model):
        yield "the pair is within the tolerance"
    if pair.gap != float(high - low):
        yield "gap"
    if isinstance(query, feta.WorstAt) and not (verdict.optimal and high - low == case.span):
        yield "not the worst pair"
    if verdict.runtime == "safe" and not _in_float32(model, rows, fair=False):
        yield "safe, but not in float32"


def epsilon_of(model: Model) -> Fraction:
    """Return the tolerance, exactly."""
    assert model.rule.tolerance is not None
    return Fraction(model.rule.tolerance)


def _in_float32(model: Model, people: Matrix, *, fair: bool) -> bool:
    """Score people as a float32 runtime does, and compare the span with the tolerance."""
    network, rows = model.network, people.astype(np.float32)
    values = rows @ network.first.slopes.T.astype(np.float32)
    for table in network.first.tables:
        indices = np.searchsorted(table.numbers, people[:, table.column])
        values = values + table.rows[indices].astype(np.float32)
    values = values + network.first.bias.astype(np.float32)
    for activation, layer in network.steps:
        activated = np.array(
            [
                [_activate32(activation, neuron, value) for neuron, value in enumerate(row)]
                for row in values
            ],
            dtype=np.float32,
        )
        values = activated @ layer.weight.T.astype(np.float32) + layer.bias.astype(np.float32)
    scores = [Fraction(float(score)) for score in values[:, 0]]
    return (max(scores) - min(scores) <= epsilon_of(model)) == fair


def _activate32(activation: Activation, neuron: int, value: np.float32) -> np.float32:
    column = neuron if activation.width > 1 else 0
    piece = int((value >= activation.breaks[:, column]).sum())
    slope, intercept = activation.slopes[piece, column], activation.intercepts[piece, column]
    return np.float32(np.float32(slope) * value + np.float32(intercept))


def wrong_audit(case: Case, epsilon: float, engine: str, rng: np.random.Generator) -> Iterator[str]:
    """Name every figure of an audit that the exact span contradicts."""
    model = replace(case.model, rule=feta.Tolerance(epsilon), threshold=None)
    records = [model.space.decode(person) for person in case.queried(rng)]
    audit = feta.audit(model, records, engine=engine)
    fair = case.span <= Fraction(epsilon)
    if {finding.status for finding in audit.findings} != {"fair" if fair else "unfair"}:
        yield "audit: status"
    gaps = {finding.pair.gap for finding in audit.findings if finding.pair is not None}
    if gaps != (set() if fair else {float(case.span)}):
        yield "audit: gap"
    if audit.ce_rate != (0.0 if fair else 1.0) or (fair and audit.flip_rate):
        yield "audit: rates"
    if not fair and abs(audit.summary.mean_violation - float(case.span)) > 1e-9 * float(case.span):
        yield "audit: mean violation"


def random_real(rng: np.random.Generator) -> tuple[Model, Vector, Fraction]:
    """Draw a model with one real-valued sensitive attribute; its span is over all real numbers."""
    real = Real("hours", -8.0, 8.0, sensitive=True)
    sex = Categorical("sex", ("female", "male"), sensitive=True)
    attributes: list[Attribute] = [real, Real("income", -8.0, 8.0)]
    attributes += [sex] if rng.random() < 0.5 else []
    space = FeatureSpace(tuple(attributes))
    network = random_network(rng, space, plain=rng.random() < 0.5)
    model = Model(space, network, feta.Tolerance(0.0))
    person = random_person(rng, space)
    ends = [oracle.highest_along(model, person, "hours", upward=up) for up in (True, False)]
    return model, person, ends[0] - ends[1]


def wrong_real(rng: np.random.Generator, engine: str, counts: Counter[str]) -> Iterator[str]:
    """Query a real-valued attribute; Unknown is allowed only at the edge."""
    drawn, person, span = random_real(rng)
    for edge, epsilon in tolerances(rng, span):
        model = replace(drawn, rule=feta.Tolerance(epsilon), threshold=None)
        for kind in (feta.FairAt, feta.WorstAt):
            query, name = kind(model, person), f"{engine}, real-valued {kind.__name__}"
            verdict = feta.verify(query, engine=engine, budget=REAL_BUDGET)
            counts[f"{name}: {type(verdict).__name__}"] += 1
            match verdict:
                case feta.Fair(certificate=certificate):
                    prove(certificate, query)
                    if span > Fraction(epsilon):
                        yield f"{name}: fair ({edge})"
                case feta.Unfair(counterexample=pair, optimal=optimal):
                    low, high = (oracle.score(model, p) for p in (pair.person, pair.counterpart))
                    if not high - low > Fraction(epsilon) or high - low > span:
                        yield f"{name}: unfair ({edge})"
                    if optimal and high - low < span * (1 - NEAR):
                        yield f"{name}: not the worst pair ({edge})"
                case feta.Unknown() if abs(span - Fraction(epsilon)) > NEAR * (span + TINY):
                    yield f"{name}: unknown ({edge})"


def run(models: int, seed: int) -> Counter[str]:
    """Check this many models; count results by kind and disagreements by name."""
    counts: Counter[str] = Counter()
    for number in range(models):
        rng = np.random.default_rng([seed, number])
        wrong: list[str] = []
        if number % REAL_EVERY == REAL_EVERY - 1:
            counts["models, real-valued"] += 1
            wrong += wrong_real(rng, ("lattice", "milp")[number // REAL_EVERY % 2], counts)
        else:
            counts["models, finite"] += 1
            wrong += _check_finite(rng, number, counts)
        for name in wrong:
            counts[f"WRONG {name}"] += 1
            print(f"model {number} (seed {seed}): {name}", file=sys.stderr)
    return counts


def _check_finite(rng: np.random.Generator, number: int, counts: Counter[str]) -> Iterator[str]:
    case = random_regression(rng)
    engines = ["exhaustive", "lattice"] + ["milp"] * (number % MILP_EVERY == 0)
    for index, (edge, epsilon) in enumerate(tolerances(rng, case.span)):
        counts[f"tolerance {edge}: {'fair' if case.span <= Fraction(epsilon) else 'unfair'}"] += 1
        for engine in engines:
            for name in wrong_verdicts(case, epsilon, engine, rng, counts):
                yield f"{name} ({edge})"
        if number % AUDIT_EVERY == 0 and index == number // AUDIT_EVERY % 5:
            yield from wrong_audit(case, epsilon, engines[number % 4 // 2], rng)


def main() -> int:
    """Run from the command line; exit 1 on any disagreement."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    started = time.perf_counter()
    return finish(run(options.models, options.seed), started)


if __name__ == "__main__":
    sys.exit(main())
