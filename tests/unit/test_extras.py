"""Tests are skipped only if they need a package that is really missing."""

import pytest

from feta import MissingExtra
from tests.extras import missing_by


@pytest.mark.parametrize(
    ("message", "package"),
    [
        (str(MissingExtra("nowhere_to_be_found", "x")), "nowhere_to_be_found"),
        ("feta: nowhere_to_be_found is not installed; pip install", "nowhere_to_be_found"),
        ("No module named 'nowhere_to_be_found.part'", "nowhere_to_be_found"),
        ("No module named 'numpy'", None),
        ("numpy is not installed; pip install 'feta-fair[x]'", None),
        ("'age' must be one of 'f', 'm', got 'x'", None),
        ("", None),
    ],
)
def test_only_a_missing_package_skips_a_test(message: str, package: str | None) -> None:
    assert missing_by(message) == package
