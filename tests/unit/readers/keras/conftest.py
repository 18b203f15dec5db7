"""Fixtures of the tests of Keras files."""

import os
from collections.abc import Iterator
from typing import Any

import pytest

from feta.readers.keras import file as keras_file
from feta.readers.keras.hdf5 import Hdf5Program

Keras = Any  # the package; it has no types


@pytest.fixture(scope="module")
def keras() -> Keras:
    """Return the package with a fixed seed."""
    pytest.importorskip("torch", reason="torch is not installed")
    os.environ["KERAS_BACKEND"] = "torch"
    package: Keras = pytest.importorskip("keras", reason="keras is not installed")
    package.utils.set_random_seed(0)
    return package


@pytest.fixture(scope="module")
def one_program() -> Iterator[None]:
    """Parse all files in forks of one process, because one process per file is slow."""
    with Hdf5Program() as program, pytest.MonkeyPatch.context() as patch:
        patch.setattr(keras_file, "parse_hdf5", program.parse)
        yield
