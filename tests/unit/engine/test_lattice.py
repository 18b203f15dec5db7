"""The lattice engine; tests/properties compares its verdicts with the oracle."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import feta
from campaigns.lattice import differences, on_a_score, random_model, random_people
from feta.engine.exhaustive import ExhaustiveEngine
from feta.engine.lattice import LatticeEngine
from feta.engine.protocol import UNLIMITED, Budget
from feta.engine.registry import choose
from feta.errors import EngineError
from feta.query import CountOf
from feta.scorer import native as native_module
from feta.scorer.network.native_kernel import NetworkKernel
from feta.verdict.certificate import LatticeProof
from feta.verdict.verdict import Reason
from tests.examples import PERSON, SPACE, linear
from tests.strategies import random_case


@pytest.mark.parametrize("seed", range(6))
def test_every_instruction_set_and_thread_count_gives_the_reference_result(seed: int) -> None:
    rng = np.random.default_rng(seed)
    model = random_model(rng, plain=seed % 2 == 0)
    people = random_people(rng, model, 4)
    assert differences(on_a_score(rng, model, people[0]), people) == []


def test_auto_chooses_the_lattice_engine() -> None:
    assert choose(CountOf(linear(age=1.0))).name == "lattice"


def test_without_the_kernel_auto_chooses_exhaustive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native_module, "native", None)
    native_module.warn_without_kernel.cache_clear()
    with pytest.warns(RuntimeWarning, match=r"kernel is missing: .* 460 times .*`pip install"):
        assert choose(CountOf(linear(age=1.0))).name == "exhaustive"
    assert (
        choose(CountOf(linear(age=1.0))).name == "exhaustive"
    )  # a second warning would be an error here
    with pytest.raises(EngineError, match=r"'lattice' is not available: .* compiler"):
        choose(CountOf(linear(age=1.0)), "lattice")


def test_weights_beyond_float32_are_left_to_exhaustive() -> None:
    assert choose(CountOf(linear(age=1e39, bias=-3e40))).name == "exhaustive"


def terms_of(kind: str, n_values: int) -> np.ndarray:
    rng = np.random.default_rng(n_values)
    direction, start = rng.normal(size=(2, 5))
    line = start + rng.permutation(n_values)[:, None] * direction
    match kind:
        case "a line":
            return line
        case "nearly a line":
            return line + 1e-13 * rng.normal(size=line.shape)
        case "all equal":
            return np.tile(start, (n_values, 1))
        case _:
            return rng.normal(size=(n_values, 5))


@pytest.mark.parametrize("kind", ["anywhere", "a line", "nearly a line", "all equal"])
@pytest.mark.parametrize("n_values", [1, 2, 3, 57])
def test_an_axis_tree_contains_every_value_in_each_of_its_nodes(n_values: int, kind: str) -> None:
    terms = terms_of(kind, n_values)
    kernel = native_module.native.Kernel(np.zeros(5), np.zeros(5), 1)
    kernel.add_axis(terms, np.abs(terms))
    kernel.set_rule(1, 0.0, True, 0, 5, 5)  # the classes of five scores: equal importances
    tree = kernel.tree(0)
    assert sorted(tree.order.tolist()) == list(range(n_values))
    for node in range(len(tree.begin)):
        center, generator, rest = (
            list(map(Fraction, part[node].tolist()))
            for part in (tree.center, tree.generator, tree.rest)
        )
        for value in tree.order[tree.begin[node] : tree.end[node]]:
            # One number from −1 to 1 along the generator must fit all neurons.
            low, high = Fraction(-1), Fraction(1)
            for n, term in enumerate(map(Fraction, terms[value].tolist())):
                offset = term - center[n]
                if generator[n] == 0:
                    assert abs(offset) <= rest[n]
                    continue
                ends = [(offset - rest[n]) / generator[n], (offset + rest[n]) / generator[n]]
                low, high = max(low, min(ends)), min(high, max(ends))
            assert low <= high
        if tree.left[node] >= 0:
            assert tree.end[tree.left[node]] == tree.begin[tree.right[node]]


def test_a_lattice_of_billions_is_decided_by_bounds_alone() -> None:
    axes = tuple(feta.Integer(f"a{n}", 0, 999, sensitive=True) for n in range(4))
    space = feta.FeatureSpace((*axes, feta.Real("income", 0, 1)))
    network = feta.Network.from_layers([([[1e-4, -1e-4, 2e-4, 1e-5, 1.0]], [3.0])])
    model = feta.Model(space, network, threshold=0.0)
    person = space.encode({"a0": 1, "a1": 2, "a2": 3, "a3": 4, "income": 0.5})[0]
    verdict = feta.verify(feta.FairAt(model, person), engine="lattice")
    assert isinstance(verdict, feta.Fair)
    assert verdict.certificate.proof == LatticeProof(10**12)
    assert feta.tally(model, person[None, :]).favorable.tolist() == [10**12]


def test_a_lattice_of_billions_on_the_edge_is_unknown_in_time() -> None:
    axes = tuple(feta.Integer(f"a{n}", 0, 999, sensitive=True) for n in range(4))
    space = feta.FeatureSpace(axes)
    network = feta.Network.from_layers([([[0.1, -0.1, 0.1, -0.1]], [0.05])])
    model = feta.Model(space, network, threshold=0.0)
    counts = feta.tally(model, np.zeros((1, 4)), engine="lattice", budget=Budget(seconds=0.2))
    assert counts.undecided[0] > 0  # how many depends on the machine
    assert not counts.decided[0]


def test_a_spent_budget_of_evaluations_leaves_people_undecided() -> None:
    model = linear(age=1.0, female=3.0, bias=-50.0)
    counts = LatticeEngine().tally(model, PERSON[None, :], Budget(evaluations=1), until="all")
    assert counts.undecided.tolist() == [SPACE.lattice.size]
    verdict = LatticeEngine().solve(feta.WorstAt(model, PERSON), Budget(evaluations=1))
    assert isinstance(verdict, feta.Unknown)


@pytest.mark.parametrize(("bias", "expected"), [(-50.0, [12, 3]), (-38.0, [5, 10])])
def test_the_order_of_listed_votes_does_not_matter(bias: float, expected: list[int]) -> None:
    """With -38 the last assignment is exactly on the threshold and is decided exactly."""
    model = linear(age=1.0, bias=bias)
    assignment_ids = np.array([120, 3, 77, 40])
    votes = np.array([1, 5, 2, 7])
    for engine in ("lattice", "exhaustive"):
        weights = feta.VoteWeights(assignment_ids, votes, model.space)
        counts = choose(CountOf(model), engine).tally(
            model, PERSON[None, :], UNLIMITED, until="all", weights=weights
        )
        assert counts.by_class.tolist() == [expected]


@pytest.mark.parametrize("evaluations", [0, 1, 20])
def test_an_interrupted_proof_never_calls_the_runtime_safe(evaluations: int) -> None:
    short, proved = Budget(evaluations=evaluations), 0
    for seed in range(60):
        case = random_case(np.random.default_rng([5, seed]), "ulp", plain=False)
        for person in case.people:
            query = feta.WorstAt(case.model, person)
            verdict = LatticeEngine().solve(query, short)
            if isinstance(verdict, feta.Fair):
                full = ExhaustiveEngine().solve(query, UNLIMITED)
                assert isinstance(full, feta.Fair)
                assert verdict.runtime != "safe" or full.runtime == "safe"
                proved += 1
            elif isinstance(verdict, feta.Unknown):
                assert verdict.reason is Reason.OUT_OF_NODES
    assert proved


def test_the_size_of_a_group_does_not_change_the_tally(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    model = random_model(rng, plain=True)
    people = random_people(rng, model, 150)
    model = on_a_score(rng, model, people[0])
    complete = LatticeEngine().tally(model, people, UNLIMITED, until="all")
    monkeypatch.setattr("feta.engine.lattice_tally.MAX_UNDECIDED_PER_CALL", 1)
    grouped = LatticeEngine().tally(model, people, UNLIMITED, until="all")
    np.testing.assert_array_equal(complete.by_class, grouped.by_class)
    np.testing.assert_array_equal(complete.runtime_safe, grouped.runtime_safe)
    assert len(LatticeEngine().tally(model, people[:0], UNLIMITED, until="all").by_class) == 0


class Watched:
    """The kernel, with a record of how many undecided counterparts each call returns."""

    def __init__(self, native: Any) -> None:  # noqa: ANN401 - compiled
        self.native, self.returned = native, []  # type: ignore[var-annotated]

    def tally(self, *arguments: object) -> Any:  # noqa: ANN401 - compiled
        return self.record(self.native.tally(*arguments))

    def tally_listed(self, *arguments: object) -> Any:  # noqa: ANN401 - compiled
        return self.record(self.native.tally_listed(*arguments))

    def record(self, result: Any) -> Any:  # noqa: ANN401 - compiled
        self.returned.append(
            sum(len(assignment_ids) for assignment_ids in result.undecided_ids.values())
        )
        return result


@pytest.mark.parametrize("weighted", [False, True])
def test_a_call_returns_undecided_counterparts_of_few_people(
    monkeypatch: pytest.MonkeyPatch, weighted: bool
) -> None:
    model = feta.Model(SPACE, feta.Network.from_layers([([[0.0] * 4], [0.25])]), threshold=0.25)
    size = SPACE.lattice.size
    people = np.tile(PERSON, (70, 1))
    people[:, 3] = np.arange(70)
    weights = None
    if weighted:
        weights = feta.VoteWeights.from_people(SPACE, next(SPACE.lattice.counterparts(PERSON)))
    engine = LatticeEngine()
    kernel = engine._kernel(model)
    assert isinstance(kernel, NetworkKernel)
    watched = Watched(kernel._native)
    kernel._native = watched  # type: ignore[assignment]
    monkeypatch.setattr("feta.engine.lattice_tally.MAX_UNDECIDED_PER_CALL", 4 * size)
    counts = engine.tally(model, people, UNLIMITED, until="all", weights=weights)
    assert counts.favorable.tolist() == [size] * 70
    assert sum(watched.returned) == 70 * size  # only exact arithmetic decides these
    assert max(watched.returned) <= 4 * size


def test_a_constant_score_on_the_threshold_is_a_tie_for_everybody() -> None:
    model = feta.Model(SPACE, feta.Network.from_layers([([[0.0] * 4], [0.25])]), threshold=0.25)
    tally = LatticeEngine().tally(model, np.tile(PERSON, (3, 1)), UNLIMITED, until="all")
    assert tally.favorable.tolist() == [SPACE.lattice.size] * 3
    assert isinstance(LatticeEngine().solve(feta.WorstAt(model, PERSON), UNLIMITED), feta.Fair)


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_the_majority_does_not_depend_on_the_number_of_threads(threads: int) -> None:
    network = feta.Network.from_layers([([[0.1, 1.0, -1.0, 0.1]], [-10.03])])
    model = feta.Model(SPACE, network, threshold=0.0)
    rng = np.random.default_rng(0)
    people = np.tile(PERSON, (700, 1))
    people[:, 0] = rng.integers(18, 91, 700)  # the person's age does not matter
    people[:, 3] = rng.integers(0, 101, 700)
    decisions = LatticeEngine(threads=threads).majority(model, people)
    assert decisions is not None
    expected = feta.tally(model, people, engine="exhaustive").decision
    assert 0 < expected.sum() < 700
    assert decisions.tolist() == expected.tolist()
    people[699, 3] = np.nan
    assert LatticeEngine(threads=threads).majority(model, people) is None


@pytest.mark.parametrize("seed", range(12))
def test_a_batch_gives_the_verdicts_of_single_people(seed: int) -> None:
    case = random_case(np.random.default_rng([31, seed]), "ulp", plain=False)
    if case.model.rule.tolerance is not None:
        return
    rng = np.random.default_rng(seed)
    lattice = case.model.space.lattice
    people = np.concatenate(
        [lattice.moved(case.people, rng.integers(0, lattice.size, len(case.people)))] * 40
    )
    shared = ~case.model.space.sensitive_columns
    people[:, shared] = people[rng.permutation(len(people))][:, shared]
    for kind in (feta.WorstAt, feta.FairAt):
        queries = kind.each(case.model, people)
        engine = LatticeEngine(threads=2)
        batch = engine.solve_many(queries, UNLIMITED)
        for query, verdict in zip(queries, batch, strict=True):
            single = engine.solve(query, UNLIMITED)
            assert type(verdict) is type(single)
            assert verdict.runtime == single.runtime
            if isinstance(verdict, feta.Unfair) and isinstance(single, feta.Unfair):
                assert verdict.optimal == single.optimal
                first, second = verdict.counterexample, single.counterexample
                assert (first.gap, first.decisions) == (second.gap, second.decisions)
                np.testing.assert_array_equal(first.counterpart, second.counterpart)
                np.testing.assert_array_equal(first.scores, second.scores)
