import numpy as np
import pytest

from feta.arrays import frozen


def test_a_frozen_array_is_a_float64_copy_without_negative_zero() -> None:
    original = np.array([-0.0, 1.0, np.nan], dtype=np.float32)
    array = frozen(original)
    original[1] = 7.0
    assert array.dtype == np.float64
    assert array[1] == 1.0
    assert not np.signbit(array[0])
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1.0
