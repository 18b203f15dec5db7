"""The numbers by which CatBoost knows the texts of categories.

A category is the low half of a 64-bit hash of its text, as a signed integer. The hash is the first
version of CityHash, whose constants and steps are fixed: models store their results. All arithmetic
is modulo 2^64.
"""

from dataclasses import dataclass

MASK = 2**64 - 1
K0 = 0xC3A5C85C97CB3127
K1 = 0xB492B66FBE98F273
K2 = 0x9AE16A3B2F90404F
K3 = 0xC949D7C7509E6557
JOIN = 0x9DDFEA08EB382D69

# The multiplier with which CatBoost hashes the categories of one row for its statistics.
ROW = 0x4906BA494954CB65

SHORT, MEDIUM, BLOCK = 16, 32, 64


def category_hash(text: str) -> int:
    """Return the number of a category: a signed integer of 32 bits."""
    low = city_hash(text.encode()) & 0xFFFFFFFF
    return low - 2**32 if low >= 2**31 else low


def row_hash(category: int) -> int:
    """Return the hash of a row with one category, which finds its statistics."""
    return (ROW * ROW * category) & MASK


def city_hash(text: bytes) -> int:
    """Return the 64-bit hash of a text."""
    if len(text) <= SHORT:
        return _hash_short(text)
    if len(text) <= MEDIUM:
        return _hash_medium(text)
    return _hash_block(text) if len(text) <= BLOCK else _hash_long(text)


def _word(text: bytes, at: int, size: int = 8) -> int:
    """Return the number in some bytes; a negative position counts from the end."""
    at = at if at >= 0 else len(text) + at
    return int.from_bytes(text[at : at + size], "little")


def _rotate(number: int, by: int) -> int:
    """Rotate to the right."""
    number &= MASK
    return ((number >> by) | (number << (64 - by))) & MASK


def _fold(number: int) -> int:
    number &= MASK
    return number ^ (number >> 47)


def _join(first: int, second: int) -> int:
    """Hash two numbers into one."""
    first, second = first & MASK, second & MASK
    mixed = _fold((first ^ second) * JOIN)
    return (_fold((second ^ mixed) * JOIN) * JOIN) & MASK


def _hash_short(text: bytes) -> int:
    length = len(text)
    if length > 8:  # noqa: PLR2004 - two words
        last = _word(text, -8)
        return _join(_word(text, 0), _rotate(last + length, length)) ^ last
    if length >= 4:  # noqa: PLR2004 - two half words
        return _join(length + (_word(text, 0, 4) << 3), _word(text, -4, 4))
    if not length:
        return K2
    low = text[0] + (text[length // 2] << 8)
    high = length + (text[-1] << 2)
    return (_fold((low * K2) ^ (high * K3)) * K2) & MASK


def _hash_medium(text: bytes) -> int:
    first, second = _word(text, 0) * K1, _word(text, 8)
    third, fourth = _word(text, -8) * K2, _word(text, -16) * K0
    return _join(
        _rotate(first - second, 43) + _rotate(third, 30) + fourth,
        first + _rotate(second ^ K3, 20) - third + len(text),
    )


def _hash_block(text: bytes) -> int:
    head = _half_block(
        _word(text, 0) + (len(text) + _word(text, -16)) * K0,
        (_word(text, 8), _word(text, 16)),
        last=_word(text, 24),
    )
    tail = _half_block(
        _word(text, 16) + _word(text, -32),
        (_word(text, -24), _word(text, -16)),
        last=_word(text, -8),
    )
    mixed = _fold((head[0] + tail[1]) * K2 + (tail[0] + head[1]) * K0)
    return (_fold(mixed * K0 + head[1]) * K2) & MASK


def _half_block(start: int, middle: tuple[int, int], *, last: int) -> tuple[int, int]:
    turned = _rotate(start + last, 52)
    other = _rotate(start, 37)
    total = start + middle[0]
    other += _rotate(total, 7)
    total += middle[1]
    return total + last, turned + _rotate(total, 31) + other


@dataclass
class _State:
    """The state of the hash of a long text: three numbers and two pairs."""

    x: int
    y: int
    z: int
    v: tuple[int, int]
    w: tuple[int, int]

    def add(self, block: bytes) -> None:
        """Add 64 bytes."""
        x = _rotate(self.x + self.y + self.v[0] + _word(block, 16), 37) * K1
        y = _rotate(self.y + self.v[1] + _word(block, 48), 42) * K1
        x = (x ^ self.w[1]) & MASK
        y = (y ^ self.v[0]) & MASK
        z = _rotate(self.z ^ self.w[0], 33)
        self.v = _weak(block[:32], self.v[1] * K1, x + self.w[0])
        self.w = _weak(block[32:], z + self.w[1], y)
        self.x, self.y, self.z = z, y, x


def _weak(half: bytes, a: int, b: int) -> tuple[int, int]:
    """Add 32 bytes to a pair of numbers."""
    words = [_word(half, at) for at in (0, 8, 16, 24)]
    a += words[0]
    b = _rotate(b + a + words[3], 21)
    total = a + words[1] + words[2]
    return (total + words[3]) & MASK, (b + _rotate(total, 44) + a) & MASK


def _hash_long(text: bytes) -> int:
    length = len(text)
    y = _word(text, -16) ^ K1
    v = _weak(text[-64:-32], length, y)
    w = _weak(text[-32:], length * K1, K0)
    z = ((_word(text, -56) ^ K0) + _fold(v[1]) * K1) & MASK
    state = _State(_rotate(z + _word(text, 0), 39) * K1, _rotate(y, 33) * K1, z, v, w)
    for at in range(0, (length - 1) // BLOCK * BLOCK, BLOCK):
        state.add(text[at : at + BLOCK])
    return _join(
        _join(state.v[0], state.w[0]) + _fold(state.y) * K1 + state.z,
        _join(state.v[1], state.w[1]) + state.x,
    )
