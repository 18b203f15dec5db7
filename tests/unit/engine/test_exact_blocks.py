"""Exact scores in blocks, compared with the oracle where scores tie."""

from collections.abc import Iterator
from typing import NoReturn

import numpy as np
import pytest

import feta
from feta.api import verify_many
from feta.arrays import Counts, Matrix
from feta.engine import exact_blocks, lattice_batch
from feta.engine.exact_blocks import ExactBlock
from feta.engine.lattice import LatticeEngine
from feta.engine.protocol import UNLIMITED, Budget
from feta.model import Model
from feta.query import CountOf
from tests import oracle
from tests.examples import PERSON, SPACE, linear
from tests.strategies import random_case, random_person


def people_of(rng: np.random.Generator, model: Model, first: Matrix) -> Matrix:
    """Return people of a case with more people, some of them twice."""
    drawn = np.stack([random_person(rng, model.space) for _ in range(4)])
    return np.concatenate([first, drawn, first])


@pytest.mark.parametrize(("few", "size"), [(256, 4096), (3, 4), (0, 1)])
def test_answers_and_counts_at_ties_match_the_oracle(
    monkeypatch: pytest.MonkeyPatch, few: int, size: int
) -> None:
    monkeypatch.setattr(exact_blocks, "FEW", few)
    monkeypatch.setattr(exact_blocks, "TOGETHER", size)
    engine, unfair = LatticeEngine(), 0
    for seed in range(25):
        rng = np.random.default_rng([12, seed])
        case = random_case(rng, "tie" if seed % 3 else "ulp", plain=seed % 2 == 0)
        model = case.model
        if model.rule.tolerance is not None or not engine.accepts(CountOf(model)):
            continue
        people = people_of(rng, model, case.people)
        counts = engine.tally(model, people, UNLIMITED, until="all", weights=case.weights)
        majority = engine.tally(model, people, UNLIMITED, until="majority", weights=case.weights)
        worst = verify_many(feta.WorstAt.each(model, people), engine="lattice")
        some = verify_many(feta.FairAt.each(model, people), engine="lattice")
        for row, person in enumerate(people):
            expected = oracle.tally(model, person, case.weights)
            assert counts.by_class[row].tolist() == expected
            assert majority.decided[row]
            assert int(majority.outcomes[row]) == oracle.fair_decision(model, person, case.weights)
            gap = oracle.worst_gap(model, person)
            if gap is None:
                assert isinstance(worst[row], feta.Fair)
                assert isinstance(some[row], feta.Fair)
                continue
            verdict, other = worst[row], some[row]
            assert isinstance(verdict, feta.Unfair)
            assert isinstance(other, feta.Unfair)
            assert verdict.optimal
            assert verdict.counterexample.gap == float(gap)
            assert oracle.differs(model, person, other.counterexample.counterpart)
            unfair += 1
    assert unfair > 20


def test_equal_worst_counterparts_are_compared_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """One attribute has no effect, so two counterparts of everybody are equally bad."""

    def fail(*_: object) -> NoReturn:
        raise AssertionError("a person was answered alone")

    model = linear(age=1.0, bias=-50.0)
    people = np.tile(PERSON, (30, 1))
    people[:, 0] = np.arange(18, 48)
    alone = [feta.worst(model, person, engine="lattice") for person in people]
    monkeypatch.setattr(lattice_batch._Batch, "alone", fail)
    verdicts = verify_many(feta.WorstAt.each(model, people), engine="lattice")
    for verdict, expected in zip(verdicts, alone, strict=True):
        assert isinstance(verdict, feta.Unfair)
        assert isinstance(expected, feta.Unfair)
        assert verdict.optimal
        pairs = verdict.counterexample, expected.counterexample
        np.testing.assert_array_equal(pairs[0].counterpart, pairs[1].counterpart)
        assert (pairs[0].gap, pairs[0].runtime) == (pairs[1].gap, pairs[1].runtime)


def test_nothing_is_evaluated_after_the_deadline() -> None:
    model = linear(age=1.0, bias=-50.0)
    ids = {0: np.arange(3), 1: np.arange(300) % SPACE.lattice.size}
    people = np.stack([PERSON, PERSON])
    for evaluate in (exact_blocks.together, exact_blocks.alone):
        assert list(evaluate(model, people, ids, deadline=0.0)) == []
        assert sum(len(block.rows) for block in evaluate(model, people, ids)) in (3, 300)


def test_people_without_time_keep_their_undecided_counterparts() -> None:
    model = feta.Model(SPACE, feta.Network.from_layers([([[0.0] * 4], [0.25])]), threshold=0.25)
    people = np.stack([PERSON, PERSON])
    counts = LatticeEngine().tally(model, people, Budget(seconds=0.0), until="all")
    assert counts.undecided.tolist() == [SPACE.lattice.size] * 2


@pytest.mark.parametrize("few", [256, 0])
def test_columns_that_move_along_are_moved_before_ties_are_decided(
    monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    """Her male counterpart earns 10 more, which ties with the debt, and a tie is favorable."""
    monkeypatch.setattr(exact_blocks, "FEW", few)
    sex = feta.Categorical("sex", ("female", "male"), sensitive=True)
    numbers = (feta.Integer("income", 0, 100), feta.Integer("debt", 0, 100))
    space = feta.FeatureSpace((*numbers, sex))
    relation = feta.Consequences.of(space, {"column": "income", "shifts": {"sex": {"male": 10}}})
    weights = np.zeros((1, space.width))
    weights[0, :2] = 0.1, -0.1  # no float64 sum of these products proves the tie
    network = feta.Network.from_layers([(weights, [0.0])])
    model = feta.Model(space, network, relation=relation, threshold=0.0)
    records = [{"sex": "female", "income": income, "debt": 40} for income in (29, 30, 31, 40)]
    people = np.concatenate([space.encode(record) for record in records])
    expected = [[2, 0], [1, 1], [1, 1], [0, 2]]
    counts = LatticeEngine().tally(model, people, UNLIMITED, until="all")
    assert counts.by_class.tolist() == expected
    for ask in (feta.FairAt, feta.WorstAt):
        verdicts = verify_many(ask.each(model, people), engine="lattice")
        found = [isinstance(verdict, feta.Unfair) for verdict in verdicts]
        assert found == [False, True, True, False]


def test_the_worst_of_candidates_is_sought_only_if_all_of_them_exist(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A man would earn 10 more; above 100 nobody can, so that only other women are left."""
    seen: list[int] = []
    together = exact_blocks.together

    def spy(model: Model, people: Matrix, near: dict[int, Counts]) -> Iterator[ExactBlock]:
        for row, ids in near.items():
            listed = model.relation.assignment_ids(people[row])
            assert listed is not None
            assert np.isin(ids, listed).all()
            seen.append(row)
        return together(model, people, near)

    monkeypatch.setattr(lattice_batch, "together", spy)
    sex = feta.Categorical("sex", ("female", "male"), sensitive=True)
    race = feta.Categorical("race", ("a", "b", "c"), sensitive=True)
    space = feta.FeatureSpace((feta.Integer("income", 0, 100), sex, race))
    relation = feta.Consequences.of(space, {"column": "income", "shifts": {"sex": {"male": 10}}})
    weights = np.zeros((1, space.width))
    weights[0, 0] = 0.1
    weights[0, space.columns_of(race)] = -4.0, 0.0, 0.0  # b and c are equally good
    network = feta.Network.from_layers([(weights, [-7.0])])
    model = feta.Model(space, network, relation=relation, threshold=0.0)
    records = [{"sex": "female", "race": "a", "income": income} for income in (90, 91, 60, 10)]
    people = np.concatenate([space.encode(record) for record in records])
    verdicts = verify_many(feta.WorstAt.each(model, people), engine="lattice")
    assert seen == [0, 2]
    for person, verdict in zip(people, verdicts, strict=True):
        expected = feta.worst(model, person, engine="exhaustive")
        assert type(verdict) is type(expected)
        if isinstance(verdict, feta.Unfair) and isinstance(expected, feta.Unfair):
            assert verdict.optimal
            assert verdict.counterexample.gap == expected.counterexample.gap
