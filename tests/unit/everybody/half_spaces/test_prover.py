"""Proved shares of the readable and of the compiled search against enumeration by the oracle."""

from fractions import Fraction

import numpy as np
import pytest

import feta
from feta.everybody.half_spaces import native
from feta.everybody.half_spaces.examine import Method, examine
from feta.everybody.half_spaces.prover import HalfSpaces
from feta.everybody.half_spaces.search import ReferenceSearch, Search
from feta.everybody.half_spaces.tree import cuts_of, halves, middle
from feta.everybody.population import marginals, uniform
from feta.everybody.where import Where
from feta.scorer.network.network import Network
from tests import oracle
from tests.everybody_cases import small_case
from tests.strategies import random_network

COMPILED = native.native is not None


class Readable(HalfSpaces):
    """The proof with the readable search."""

    def _search(self, index: int) -> Search:
        part = self.parts[index]
        problem = self.problems[index]
        return ReferenceSearch(
            problem, lambda low, high: self._decide(part, low, high), few=self._few
        )


KINDS = [Readable, HalfSpaces]


def mixed_model(seed: int) -> feta.Model:
    rng = np.random.default_rng(seed)
    space = feta.FeatureSpace(
        (
            feta.Integer("age", 20, 23, sensitive=True),
            feta.Real("income", -4.0, 4.0, missing=True),
            feta.Categorical("town", ("a", "b"), other=True, missing=True),
            feta.Integer("years", 0, 200),
            feta.Integer("children", 0, 6, missing=True),
        )
    )
    return feta.Model(space, random_network(rng, space), threshold=0.0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(40))
def test_proved_shares_bracket_enumeration(kind: type[HalfSpaces], seed: int) -> None:
    case = small_case(seed)
    for few in (1, 8):
        proof = kind.of(case.model, case.population, few=few)
        if isinstance(proof, str):
            assert "threshold" in proof
            continue
        for _ in range(100):
            if proof.done:
                break
            proof.step(0.0)
            assert proof.fair <= case.fair
            assert proof.unfair <= case.unfair
        assert proof.done
        assert proof.fair + proof.unfair > 1 - Fraction(1, 2**40)
        if proof.unfair:
            assert proof.witness is not None
            assert not oracle.is_fair(case.model, proof.witness)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_shares_of_real_numbers_bracket_draws(kind: type[HalfSpaces], seed: int) -> None:
    model = mixed_model(seed)
    population = uniform(model.space, Where())
    if seed % 2:  # the frequencies of a table, in which numbers and cells are missing
        drawn = population.draw(np.random.default_rng(seed), 40)
        population = marginals(model.space, drawn, Where())
    proof = kind.of(model, population)
    assert isinstance(proof, HalfSpaces)
    for _ in range(40):
        proof.step(0.0)
    people = population.draw(np.random.default_rng(1), 600)
    fair = float(np.mean([oracle.is_fair(model, person) for person in people]))
    assert float(proof.fair) <= fair + 0.08
    assert float(proof.unfair) <= 1 - fair + 0.08
    drawn = proof.draw(np.random.default_rng(2), 20)
    assert np.isfinite(drawn).all()


@pytest.mark.skipif(not COMPILED, reason="needs the compiled search")
@pytest.mark.parametrize("seed", range(8))
def test_compiled_boxes_equal_readable_ones(seed: int) -> None:
    """They differ by float32 shares, and by lines that are added by doubling."""
    model = mixed_model(seed)
    people = uniform(model.space, Where())
    if seed % 2:
        people = marginals(model.space, people.draw(np.random.default_rng(seed), 60), Where())
    proof = HalfSpaces.of(model, people)
    assert isinstance(proof, HalfSpaces)
    rng = np.random.default_rng(seed)
    problem = proof.problems[0]
    for simd in (False, True):
        search = native.NativeSearch(problem, lambda *_: (Fraction(0), Fraction(0)), simd=simd)
        lower, upper = problem.box
        for _ in range(12):
            for method in (Method(each=False, bins=10), Method(each=True, bins=10)):
                fair, unfair = search.examine(lower, upper, method)
                (other,) = examine(problem, lower[None], upper[None], method)
                assert abs(fair - other.fair) < 0.03
                assert abs(unfair - other.unfair) < 0.03
            axes = [
                index
                for index, axis in enumerate(problem.axes)
                if middle(axis, float(lower[index]), float(upper[index])) is not None
            ]
            if not axes:
                break
            both = halves(problem, lower, upper, int(rng.choice(axes)))
            lower, upper = both[int(rng.integers(2))]
            if (lower > upper).any():
                break


def test_a_dead_neuron_proves_everybody_fair_at_once() -> None:
    """The only neuron that reads age is inactive for everybody: no bound of the score is needed."""
    space = feta.FeatureSpace(
        (feta.Integer("age", 0, 1, sensitive=True), feta.Integer("x", 0, 10**6))
    )
    layers = [([[1.0, -1.0], [0.0, 1.0]], [-2.0, -7.0]), ([[5.0, 1.0]], [-500.0])]
    model = feta.Model(space, Network.from_layers(layers), threshold=0.0)
    for kind in KINDS:
        proof = kind.of(model, uniform(space, Where()))
        assert isinstance(proof, HalfSpaces)
        proof.step()
        assert proof.done
        assert proof.fair == 1
        assert proof.n_boxes == 1


def test_one_half_space_is_counted_without_cuts() -> None:
    space = feta.FeatureSpace(
        (
            feta.Integer("sex", 0, 1, sensitive=True),
            feta.Integer("x", 0, 999),
            feta.Integer("y", 0, 999),
        )
    )
    model = feta.Model(space, Network.from_layers([([[50.0, 1.0, 1.0]], [-1000.0])]), threshold=0.0)
    for kind in KINDS:
        proof = kind.of(model, uniform(space, Where()))
        assert isinstance(proof, HalfSpaces)
        proof.step()
        assert proof.n_boxes == 1
        # 950 ≤ x + y < 1000 is unfair; the first box has all combinations, so only fair people.
        assert 0.89 < proof.fair <= 1 - Fraction(48_775, 10**6)
        for _ in range(200):
            proof.step(0.0)
        assert proof.fair + proof.unfair > Fraction(995, 1000)
        assert proof.unfair <= Fraction(48_775, 10**6)


def test_others_are_refused_by_name() -> None:
    ages = feta.FeatureSpace((feta.Integer("age", 0, 64, sensitive=True), feta.Real("x", 0, 1)))
    network = Network.from_layers([([[1.0, 1.0]], [0.0])])
    refused = HalfSpaces.of(feta.Model(ages, network, threshold=0.0), uniform(ages, Where()))
    assert refused == "there are more than 64 combinations of sensitive values"
    smooth = Network.from_layers([([[1.0, 1.0]], [0.0]), ([[1.0]], [0.0])], activation="tanh")
    two = feta.FeatureSpace((feta.Integer("age", 0, 1, sensitive=True), feta.Real("x", 0, 1)))
    refused = HalfSpaces.of(feta.Model(two, smooth, threshold=0.0), uniform(two, Where()))
    assert refused == "the model is no network with piecewise-linear activations only"


def test_cuts_are_those_of_the_tree() -> None:
    model = mixed_model(1)
    proof = HalfSpaces.of(model, uniform(model.space, Where()))
    assert isinstance(proof, HalfSpaces)
    proof.step()
    proof.step(0.0)
    cuts = proof.cuts()
    assert sum(cut is None for cut in cuts) == sum(cut is not None for cut in cuts) + 2
    assert len(list(cuts_of(proof.problems[0], proof.searches[0].tree()))) <= len(cuts)
