"""Bytes of untrusted files, of bounded size."""

from pathlib import Path

from feta.errors import NetworkError

# A network for tables has thousands of weights, not billions; beyond this a file is not a model
# that FETA could answer for, and may be one made to exhaust memory.
LARGEST_FILE = 128 * 2**20


def read_bytes(path: Path) -> bytes:
    """Read a regular file of bounded size."""
    size = regular_size(path)
    if size > LARGEST_FILE:
        most = LARGEST_FILE // 2**20
        raise NetworkError(f"the file must have at most {most} MB, got {size // 2**20} MB")
    return path.read_bytes()


def regular_size(path: Path) -> int:
    """Return the size of a regular file; raise for a device or a pipe, which might never end."""
    if not path.exists():
        raise NetworkError(f"there is no such file: {path.name!r}")
    if not path.is_file():
        raise NetworkError("there must be a regular file here, got a folder or a device")
    return path.stat().st_size
