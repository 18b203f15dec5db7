"""All values of the checker are frozen, so that evidence cannot change while it is checked."""

import inspect
from dataclasses import is_dataclass

import pytest

from feta.checker import (
    box,
    criterion,
    evaluators,
    exact_network,
    lines,
    network_bounds,
    sensitive_axis,
)

MODULES = (box, criterion, evaluators, exact_network, lines, network_bounds, sensitive_axis)
VALUES = [
    value
    for module in MODULES
    for value in vars(module).values()
    if inspect.isclass(value) and is_dataclass(value) and value.__module__ == module.__name__
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: str(value.__name__))
def test_values_are_frozen_and_have_no_other_attributes(value: type) -> None:
    assert value.__dataclass_params__.frozen  # type: ignore[attr-defined]
    assert "__slots__" in vars(value)


# Arrays have no truth value, so what contains them is compared by identity.
COMPARED = {"Box", "BoxBounds", "SensitiveAxis"}


@pytest.mark.parametrize("value", VALUES, ids=lambda value: str(value.__name__))
def test_only_values_without_arrays_are_compared(value: type) -> None:
    assert value.__dataclass_params__.eq == (value.__name__ in COMPARED)  # type: ignore[attr-defined]
