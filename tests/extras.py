"""Skips for tests that need a package that is not installed."""

import re
from importlib.util import find_spec

import pytest


def missing(*packages: str) -> list[str]:
    """Return those of these packages that are not installed."""
    return [package for package in packages if find_spec(package) is None]


def needs(*packages: str) -> pytest.MarkDecorator:
    """Skip a test if one of these packages is missing."""
    missing_packages = missing(*packages)
    return pytest.mark.skipif(
        bool(missing_packages), reason=f"{', '.join(missing_packages)} is not installed"
    )


def missing_by(message: str) -> str | None:
    """Return the package that a message names as missing, if it really is."""
    for names in re.findall(r"No module named '(\w+)|\b(\w+) is not installed; pip", message):
        for package in names:
            if package and missing(package):
                return str(package)
    return None


def skip_if_missing(message: object) -> None:
    """Skip if a message states that a package is missing, and it really is."""
    package = missing_by(str(message))
    if package is not None:
        pytest.skip(f"{package} is not installed")
