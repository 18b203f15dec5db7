"""Campaign of the lattice engine against `exhaustive`, on lattices large enough for pruning.

    python -m campaigns.lattice [--networks 300] [--seed 0]

Counts, worst counterparts and verdicts must be equal for each instruction set of the processor,
with one thread and with two. Three of four networks count majorities by linear forms whatever the
size of the lattice. For small lattices, `campaigns.core --engine lattice` compares with the oracle.
"""

import argparse
import sys
import time
from collections import Counter
from dataclasses import replace

import numpy as np

import feta
from campaigns.result import finish
from feta.arrays import Matrix
from feta.engine.exhaustive import ExhaustiveEngine
from feta.engine.lattice import LatticeEngine
from feta.engine.protocol import UNLIMITED
from feta.model import Model
from feta.query import FairAt, WorstAt
from feta.rule import Threshold
from feta.scorer.native import native
from feta.scorer.network import native_kernel
from feta.scorer.network.activation import relu
from feta.scorer.network.builder import NetworkBuilder
from feta.space.attribute import Attribute, Categorical, Integer, Real
from feta.space.feature_space import FeatureSpace
from tests.strategies import random_activation, random_rule, random_threshold

FORMS_FROM = native_kernel.FORMS_FROM


def random_space(rng: np.random.Generator) -> FeatureSpace:
    """Draw a space with hundreds to tens of thousands of counterparts."""
    attributes: list[Attribute] = [
        Integer("age", 18, 18 + int(rng.integers(10, 60)), sensitive=True),
        Categorical("race", tuple("abcdefg"[: rng.integers(2, 8)]), sensitive=True),
        Real("income", 0.0, 10.0),
        Real("debt", -3.0, 3.0),
    ]
    if rng.random() < 0.7:
        attributes.append(Categorical("sex", ("f", "m"), sensitive=True))
    if rng.random() < 0.4:
        attributes.append(
            Categorical("land", tuple(f"l{n}" for n in range(rng.integers(5, 30))), True)
        )
    return FeatureSpace(tuple(attributes))


def random_model(rng: np.random.Generator, *, plain: bool) -> Model:
    """Draw a network of up to three hidden layers of up to 20 neurons, similar to trained ones."""
    space = random_space(rng)
    rule = random_threshold(rng) if plain else random_rule(rng)
    builder, inputs = NetworkBuilder(), space.width
    widths = [2 * int(rng.integers(1, 11)) for _ in range(rng.integers(1, 4))]
    for width in widths:
        builder.linear(rng.normal(size=(width, inputs)) / np.sqrt(inputs), rng.normal(size=width))
        step = relu() if plain else random_activation(rng, width)
        builder.activate(step, "a random activation")
        inputs = builder.width or width
    builder.linear(rng.normal(size=(rule.outputs, inputs)), rng.normal(size=rule.outputs))
    return Model(space, builder.network(), rule)


def random_people(rng: np.random.Generator, model: Model, count: int) -> Matrix:
    """Draw people of the model's space."""
    people = np.zeros((count, model.space.width))
    for attribute in model.space.attributes:
        columns = model.space.columns_of(attribute)
        if isinstance(attribute, Real):
            people[:, columns] = rng.uniform(attribute.low, attribute.high, (count, 1))
        elif isinstance(attribute, Categorical | Integer):
            people[:, columns] = attribute.codes(rng.integers(0, attribute.n_values, count))
    return people


def on_a_score(rng: np.random.Generator, model: Model, person: Matrix) -> Model:
    """Put the threshold on the score of one of the person's counterparts."""
    if not isinstance(model.rule, Threshold):
        return model
    number = int(rng.integers(model.space.lattice.size))
    other = model.space.lattice.counterpart(person, number)
    value = float(model.exact_scores(other[None, :]).floats()[0, 0])
    return replace(model, rule=replace(model.rule, value=value), threshold=None)


def differences(model: Model, people: Matrix) -> list[str]:
    """Name every result of the lattice engine that differs from the reference."""
    reference, wrong = ExhaustiveEngine(), list[str]()
    kernels = [LatticeEngine(threads=2)]
    for name in native.instruction_sets():
        native.allow_instructions(name)
        kernels.append(LatticeEngine(threads=1))
        if model.rule.tolerance is None:  # the engine builds its kernel at the first query
            kernels[-1].tally(model, people[:1], UNLIMITED, until="majority")
        else:
            kernels[-1].solve(FairAt(model, people[0]), UNLIMITED)
    native.allow_instructions(native.instruction_sets()[0])
    if model.rule.tolerance is None:
        expected = reference.tally(model, people, UNLIMITED, until="all")
        for kernel in kernels:
            tally = kernel.tally(model, people, UNLIMITED, until="all")
            wrong += ["tally"] * bool((tally.by_class != expected.by_class).any())
            wrong += ["safe"] * bool((tally.runtime_safe & ~expected.runtime_safe).any())
            early = kernel.tally(model, people, UNLIMITED, until="majority")
            wrong += ["majority"] * bool(
                (early.winner != expected.winner).any() or not early.decided.all()
            )
    for person in people[:3]:
        for query in (FairAt(model, person), WorstAt(model, person)):
            truth = reference.solve(query, UNLIMITED)
            for kernel in kernels:
                verdict = kernel.solve(query, UNLIMITED)
                wrong += [f"{type(query).__name__}"] * (type(verdict) is not type(truth))
                if isinstance(query, WorstAt) and isinstance(verdict, feta.Unfair):
                    assert isinstance(truth, feta.Unfair)
                    pair, other = verdict.counterexample, truth.counterexample
                    wrong += ["worst pair"] * bool((pair.counterpart != other.counterpart).any())
    return wrong


def run(networks: int, seed: int) -> Counter[str]:
    """Check this many networks, half of them plain, a third with the threshold on a score."""
    counts: Counter[str] = Counter()
    for number in range(networks):
        rng = np.random.default_rng([seed, number])
        native_kernel.FORMS_FROM = FORMS_FROM if number % 4 == 3 else 1
        model = random_model(rng, plain=number % 2 == 0)
        people = random_people(rng, model, 8)
        if number % 3 == 0:
            model = on_a_score(rng, model, people[0])
        counts["networks"] += 1
        counts["counterparts compared"] += len(people) * model.space.lattice.size
        for name in differences(model, people):
            counts[f"WRONG {name}"] += 1
            print(f"network {number} (seed {seed}): {name}", file=sys.stderr)
    return counts


def main() -> int:
    """Run from the command line; exit 1 on any difference."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--networks", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    started = time.perf_counter()
    return finish(run(options.networks, options.seed), started)


if __name__ == "__main__":
    sys.exit(main())
