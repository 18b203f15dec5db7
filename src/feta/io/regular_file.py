"""Regular files: reading with a size limit, and writing that replaces a file at once."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from feta.errors import NetworkError

# A network for tables has thousands of weights, not billions. A larger file is not a model that
# FETA could verify, and may have been made to exhaust memory.
LARGEST_FILE = 128 * 2**20


def path_problem(path: Path) -> str:
    """Return why a path is not a regular file; empty if it is one."""
    if not path.exists():
        return "there is no such file"
    return "" if path.is_file() else "got a folder or a device; expected a regular file"


def regular_size(path: Path) -> int:
    """Return the size of a regular file; raise for a device or a pipe, which might never end."""
    problem = path_problem(path)
    if problem:
        raise NetworkError(problem if path.exists() else f"{problem}: {path.name!r}")
    return path.stat().st_size


def read_bytes(path: Path) -> bytes:
    """Read a regular file of at most `LARGEST_FILE` bytes."""
    size = regular_size(path)
    if size > LARGEST_FILE:
        raise NetworkError(
            f"the file is too large: got {size // 2**20} MB; "
            f"expected at most {LARGEST_FILE // 2**20} MB"
        )
    return path.read_bytes()


def part_path(target: Path) -> Path:
    """Return a path for an unfinished file, to which no other process writes."""
    return target.with_name(f".{target.name}.{os.getpid()}-{secrets.token_hex(4)}.part")


@contextmanager
def atomic_write(target: Path) -> Iterator[Path]:
    """Yield a path to write to; the file replaces the target, or is deleted after an exception."""
    part = part_path(target)
    try:
        yield part
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
