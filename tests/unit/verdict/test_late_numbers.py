"""Pairs of smooth networks are decided in float64 where it suffices; their scores come later."""

import pickle
from copy import copy
from typing import Literal

import numpy as np
import pytest

from feta import CertificateError, Counterexample, FairAt, Model, Network, Threshold, Unfair
from feta.api import verify_many
from feta.arrays import Matrix
from feta.scorer.exact_scores import ExactScores
from feta.scorer.network.smooth import exact
from feta.scorer.network.smooth.exact import smooth_scores
from feta.verdict import counterexample

pytest.importorskip("flint", reason="python-flint is not installed")

from tests.smooth_cases import SPACE, SmoothCase, random_case, wide_case


def pairs_of(case: SmoothCase) -> tuple[Matrix, Matrix]:
    others = np.array(case.counterparts(case.people[0].tolist()))
    return np.repeat(case.people[:1], len(others), axis=0), others


def at(case: SmoothCase, threshold: float) -> Model:
    return Model(SPACE, case.model.scorer, threshold=threshold)


def same_as_alone(model: Model, people: Matrix, others: Matrix) -> int:
    """Compare a batch with pairs that are replayed in balls, one by one; return how many differ."""
    found = Counterexample.witnesses(model, people, others)
    for person, other, pair in zip(people, others, found, strict=True):
        try:
            alone = Counterexample(model, person, other)
        except CertificateError:
            assert pair is None
            continue
        assert pair is not None
        assert pair.gap == alone.gap
        assert pair.scores.tobytes() == alone.scores.tobytes()
        assert not pair.scores.flags.writeable
        assert (pair.decisions, pair.runtime) == (alone.decisions, alone.runtime)
        assert pair.fingerprint == alone.fingerprint
        assert pair.person.tolist() == person.tolist()
        assert pair.counterpart.tolist() == other.tolist()
    return sum(pair is not None for pair in found)


@pytest.mark.parametrize("number", range(6))
def test_a_batch_equals_pairs_in_balls_and_the_oracle(number: int) -> None:
    case = random_case(np.random.default_rng([25, number]), edge=True, people=1)
    people, others = pairs_of(case)
    nearest = float(case.score(others[number].tolist()).mid())
    for steps in (-1, 0, 1):  # one ulp below the rounded score, at it, and one ulp above
        model = at(case, float(np.nextafter(nearest, steps * np.inf)) if steps else nearest)
        rounded = SmoothCase(model, case.weights, case.biases, case.functions, case.people)
        own = rounded.favorable(people[0].tolist())
        differing = [rounded.favorable(row.tolist()) not in (own, None) for row in others]
        assert same_as_alone(model, people, others) == sum(differing)


def test_classes_of_smooth_networks_are_decided_alike() -> None:
    rng = np.random.default_rng(26)
    compared = 0
    for _ in range(60):
        model, people = wide_case(rng, edge=False)
        if model.rule.outputs == 1:
            continue
        people = np.repeat(people, 8, axis=0)
        ids = rng.integers(model.space.lattice.size, size=len(people))
        compared += same_as_alone(model, people, model.space.lattice.moved(people, ids))
    assert compared > 20


@pytest.mark.parametrize("equality", ["favorable", "unfavorable"])
def test_float64_leaves_an_exact_tie_to_balls(
    equality: Literal["favorable", "unfavorable"],
) -> None:
    """The linear side of ELU ties exactly, so the rule decides."""
    network = Network.from_layers(
        [(np.eye(SPACE.width), np.ones(SPACE.width)), (np.ones((1, SPACE.width)), [0.0])],
        activation="elu",
        source="float64",
    )
    record = {"sex": "f", "income": 0.5, "debts": 1}
    people = SPACE.encode([{"age": 20, **record}] * 2)
    others = SPACE.encode([{"age": 19, **record}, {"age": 21, **record}])
    model = Model(SPACE, network, rule=Threshold(28.5, equality=equality))
    below, above = Counterexample.witnesses(model, people, others)
    assert same_as_alone(model, people, others) == 1
    pair, missing = (below, above) if equality == "favorable" else (above, below)
    assert missing is None
    assert pair is not None
    assert (pair.gap, pair.runtime) == (1.0, "sensitive")


@pytest.mark.parametrize("bits", [4, 30, 60, 66])
def test_more_bits_round_what_few_bits_leave_open(
    bits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counterexample, "FEW_BITS", bits)
    used: list[tuple[int, int]] = []

    def recorded(network: Network, people: Matrix, bits: int = 1024) -> ExactScores:
        used.append((bits, len(people)))
        return smooth_scores(network, people, bits)

    monkeypatch.setattr("feta.scorer.network.network.smooth_scores", recorded)
    for number in range(5):
        case = random_case(np.random.default_rng([31, number]), edge=False, people=1)
        people, others = pairs_of(case)
        scores = case.model.scorer(others)[:, 0]
        used.clear()
        found = same_as_alone(at(case, float(np.median(scores)) + 1e-9), people, others)
        few, many = ([rows for precision, rows in used if precision == p] for p in (bits, 1024))
        assert few == [2 * found] if found else not few
        if found and bits < 50:
            assert 2 * found in many  # no score has so few bits


def unfair(case: SmoothCase) -> Unfair:
    people, others = pairs_of(case)
    scores = case.model.scorer(others)[:, 0]
    model = at(case, float(scores.min() + scores.max()) / 2)
    (verdict,) = verify_many([FairAt(model, people[0])])
    assert isinstance(verdict, Unfair)
    return verdict


def test_balls_are_computed_when_a_number_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    case = random_case(np.random.default_rng(28), edge=False, people=1)
    with monkeypatch.context() as patched:
        patched.setattr(exact, "_propagate", lambda *_: pytest.fail("balls were computed"))
        pair = unfair(case).counterexample
        assert pair.decisions in ((0, 1), (1, 0))
    assert not hasattr(pair, "unknown")
    assert pair.gap == pytest.approx(abs(pair.scores[1] - pair.scores[0]), rel=1e-9)


@pytest.mark.parametrize("duplicate", [copy, lambda pair: pickle.loads(pickle.dumps(pair))])
def test_copies_keep_the_numbers(duplicate: object) -> None:
    pair = unfair(random_case(np.random.default_rng(29), edge=False)).counterexample
    other = duplicate(pair)  # type: ignore[operator]
    assert (other.gap, other.scores.tolist()) == (pair.gap, pair.scores.tolist())
    assert f"gap={pair.gap!r}" in repr(pair)


def test_without_flint_no_pair_is_stated(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pair states its scores, and without python-flint these are not known."""
    case = random_case(np.random.default_rng(30), edge=False, people=1)
    found, (people, others) = unfair(case).counterexample, pairs_of(case)
    blind = at(case, float(found.scores.mean()))
    monkeypatch.setattr(exact, "is_available", lambda: False)
    assert Counterexample.witnesses(blind, people, others) == [None] * len(others)
