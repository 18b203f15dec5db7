"""Error messages of the kernel's bindings."""

import re

import numpy as np
import pytest

native = pytest.importorskip("feta._native")


@pytest.mark.parametrize(
    ("constants", "magnitudes", "message"),
    [
        (np.zeros((4, 2)), np.zeros((4, 2)), "(4, 2) and (4, 2)"),
        (np.zeros((4, 3)), np.zeros((5, 3)), "(4, 3) and (5, 3)"),
        (np.zeros(3), np.zeros(3), "(3) and (3)"),
    ],
)
def test_arrays_of_other_shapes_are_rejected(
    constants: np.ndarray, magnitudes: np.ndarray, message: str
) -> None:
    kernel = native.Kernel(np.zeros(3), np.zeros(3), 1)
    expected = rf"^invalid shape of constants or magnitudes: got {re.escape(message)}; expected "
    with pytest.raises(ValueError, match=expected + r"\(people, 3\)$"):
        kernel.worst_real(constants, magnitudes, np.ones(1), np.zeros(1), -1.0, 0, 1)
