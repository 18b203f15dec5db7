"""Majorities counted by linear forms, against enumeration, for every instruction set."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from campaigns.lattice import on_a_score, random_model, random_people
from feta.engine.exhaustive import ExhaustiveEngine
from feta.engine.lattice import LatticeEngine
from feta.engine.protocol import UNLIMITED, Budget
from feta.model import Model
from feta.rule import Threshold
from feta.scorer.network import native_kernel

native = pytest.importorskip("feta._native")

SETS = native.instruction_sets()  # the fastest first


@pytest.fixture(autouse=True)
def forms_for_every_lattice(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Use forms on lattices that are small enough to be enumerated."""
    monkeypatch.setattr(native_kernel, "FORMS_FROM", 1)
    yield
    native.allow_instructions(SETS[0])


def models(seed: int, count: int) -> Iterator[tuple[Model, np.ndarray]]:
    """Draw threshold networks and people, half of them with a tie of somebody's counterpart."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        model = random_model(rng, plain=True)
        people = random_people(rng, model, 6)
        yield (on_a_score(rng, model, people[0]) if number % 2 else model), people


@pytest.mark.parametrize("instructions", SETS)
def test_winners_are_those_of_enumeration(instructions: str) -> None:
    for model, people in models(1, 6):
        native.allow_instructions(instructions)
        found = LatticeEngine(threads=1).tally(model, people, UNLIMITED, until="majority")
        expected = ExhaustiveEngine().tally(model, people, UNLIMITED, until="all")
        assert found.decided.all()
        assert found.winner.tolist() == expected.winner.tolist()
        assert (found.by_class <= expected.by_class).all()
        assert not (found.runtime_safe & ~expected.runtime_safe).any()


def test_close_and_lopsided_majorities_are_right_for_both_leaders() -> None:
    """Thresholds at quantiles: the sample may name the loser, so that the leader switches."""
    for model, people in models(2, 2):
        lattice = model.space.lattice
        assert isinstance(model.rule, Threshold)
        others = np.array(
            lattice.moved(np.repeat(people[:1], lattice.size, 0), np.arange(lattice.size))
        )
        scores = np.sort(model.score(others))
        for share in (0.01, 0.3, 0.48, 0.499, 0.501, 0.52, 0.7, 0.99):
            value = float(scores[int(share * len(scores))])
            moved = replace(model, rule=replace(model.rule, value=value), threshold=None)
            found = LatticeEngine(threads=1).tally(moved, people[:1], UNLIMITED, until="majority")
            expected = ExhaustiveEngine().tally(moved, people[:1], UNLIMITED, until="all")
            assert found.winner.tolist() == expected.winner.tolist()


def test_a_spent_budget_leaves_counts_that_are_still_proved() -> None:
    for model, people in models(3, 3):
        expected = ExhaustiveEngine().tally(model, people, UNLIMITED, until="all")
        for evaluations in (1, 70, 200):
            budget = Budget(evaluations=evaluations)
            found = LatticeEngine(threads=1).tally(model, people, budget, until="majority")
            assert (found.by_class <= expected.by_class).all()
            decided = found.decided
            assert found.winner[decided].tolist() == expected.winner[decided].tolist()
