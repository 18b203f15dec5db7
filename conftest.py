"""Skips for the doctests of training if torch is not installed."""

from importlib.util import find_spec

import pytest

NEEDS_TORCH = ("feta.train.", "feta.estimators.ce_fair_classifier.")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the doctests that need torch."""
    if find_spec("torch") is not None:
        return
    for item in items:
        if isinstance(item, pytest.DoctestItem) and item.name.startswith(NEEDS_TORCH):
            item.add_marker(pytest.mark.skip(reason="torch is not installed"))
