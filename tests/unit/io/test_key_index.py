import numpy as np

from feta.io.key_index import KeyIndex


def key(number: int, rest: bytes = b"") -> bytes:
    return number.to_bytes(8, "big") + rest


def test_an_index_equals_a_dictionary_whatever_the_blocks() -> None:
    rng = np.random.default_rng(0)
    index, expected = KeyIndex(), dict[bytes, int]()
    for _ in range(60):
        keys = [key(int(number)) for number in rng.integers(0, 3000, rng.integers(0, 200))]
        assert index.find(keys) == [expected.get(one) for one in keys]
        new = [one for one in dict.fromkeys(keys) if one not in expected]
        numbers = list(range(len(expected) + 1, len(expected) + 1 + len(new)))
        index.add(new, numbers)
        expected |= dict(zip(new, numbers, strict=True))
        assert len(index) == len(expected)
    assert index.find([*expected]) == [*expected.values()]


def test_an_empty_index_knows_nobody() -> None:
    index = KeyIndex()
    index.add([], [])
    assert index.find([]) == []
    assert index.find([bytes(32), b"\xff" * 32]) == [None, None]
    assert len(index) == 0


def test_of_equal_keys_the_row_added_last_counts() -> None:
    """Damage can make keys equal; whoever reads the row compares the whole key."""
    index = KeyIndex()
    index.add([key(1), key(1, b"other"), key(2)], [5, 6, 7])
    assert index.find([key(1), key(2)]) == [6, 7]
    index.add([key(1)], [8])
    assert index.find([key(1)]) == [8]
