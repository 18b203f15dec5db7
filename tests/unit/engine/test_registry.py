from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pytest

from feta import EngineError, FairAt, FeatureSpace, Integer, Model, Network, verify
from feta.engine import registry
from feta.engine.exhaustive import ExhaustiveEngine
from feta.engine.registry import choose, engines, is_ours
from feta.query import CountOf, Query
from feta.scorer.network.layers import Columns, LookupTable
from tests.examples import PERSON, SPACE, linear


def wide(n_columns: int, n_values: int) -> Model:
    """Return a model with n_values^n_columns counterparts."""
    space = FeatureSpace(
        tuple(Integer(f"n{n}", 1, n_values, sensitive=True) for n in range(n_columns))
    )
    return Model(space, Network.from_layers([([[1.0] * n_columns], [0.0])]))


REAL = Model(SPACE.with_sensitive(["income"]), Network.from_layers([([[1.0] * 4], [0.0])]))


TABLED = Model(
    REAL.space,
    replace(
        REAL.network,
        first=Columns(
            np.zeros(1), np.zeros((1, 4)), (LookupTable(3, np.array([50.0]), np.ones((1, 1))),)
        ),
    ),
)


class Picky(ExhaustiveEngine):
    """A plugin's engine that accepts no model."""

    def accepts(self, query: Query) -> bool:  # noqa: ARG002 - the protocol's
        return False


@dataclass(frozen=True)
class Point:
    """An entry point, as in importlib.metadata."""

    name: str
    engine: type[ExhaustiveEngine]

    def load(self) -> type[ExhaustiveEngine]:
        return self.engine


@pytest.fixture
def plugins(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Point]]:
    points: list[Point] = []
    monkeypatch.setattr(registry, "entry_points", lambda group: points if group else [])
    engines.cache_clear()
    yield points
    engines.cache_clear()


@pytest.mark.parametrize("name", ["auto", "exhaustive"])
def test_a_finite_lattice_is_accepted(name: str) -> None:
    assert choose(CountOf(linear()), name).accepts(CountOf(linear()))


@pytest.mark.parametrize(
    ("model", "name", "message"),
    [
        (
            linear(),
            "exhaustiv",
            r"got 'exhaustiv'; expected one of 'auto', .*; did you mean 'exhaustive'",
        ),
        (linear(), "", "unknown engine: got ''; expected one of 'auto', "),
        (
            TABLED,
            "auto",
            "no engine accepts this model: .* table or bands .* expected a finite one with at most",
        ),
        (
            wide(2, 2**40),
            "exhaustive",
            r"'exhaustive' does not accept this model: got over 2\^80 counterparts per person",
        ),
        (
            REAL,
            "exhaustive",
            "'exhaustive' does not accept this model: got a real-valued .* declare it integer",
        ),
    ],
)
def test_an_unsuitable_engine_is_rejected(model: Model, name: str, message: str) -> None:
    with pytest.raises(EngineError, match=message):
        choose(CountOf(model), name)


def test_a_model_that_no_engine_accepts_is_rejected() -> None:
    with pytest.raises(EngineError, match="narrow its domain"):
        verify(FairAt(TABLED, PERSON))


@pytest.mark.parametrize("model", [wide(2, 2**31), wide(2, 2**31 - 1), wide(21, 2**52)])
def test_lattices_too_large_to_count_are_left_to_the_solver(model: Model) -> None:
    assert choose(CountOf(model)).name == "milp"


def test_a_lattice_too_long_for_the_kernel_is_enumerated_if_it_is_small() -> None:
    assert choose(CountOf(wide(1, 10**6))).name == "exhaustive"
    assert choose(CountOf(wide(1, 10**8 + 1))).name == "milp"


def test_a_plugin_is_found_and_skipped_if_it_does_not_accept(plugins: list[Point]) -> None:
    plugins.append(Point("picky", Picky))
    assert isinstance(engines()["picky"], Picky)
    assert not isinstance(choose(CountOf(linear())), Picky)
    with pytest.raises(EngineError, match="the engine 'picky' does not accept this model"):
        choose(CountOf(linear()), "picky")


def test_a_plugin_cannot_replace_a_built_in_engine(plugins: list[Point]) -> None:
    plugins.append(Point("exhaustive", Picky))
    assert type(choose(CountOf(linear()), "exhaustive")) is ExhaustiveEngine


def test_only_built_in_engines_are_ours() -> None:
    assert all(is_ours(engine) for engine in engines().values())
    assert not is_ours(Picky())
    assert not is_ours(ExhaustiveEngine())  # not the registered instance
