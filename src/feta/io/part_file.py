"""PartFile: a file that appears complete or not at all, even if two processes write it at once."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def part_of(target: Path) -> Path:
    """Name the unfinished file of this process: no other process writes to it."""
    return target.with_name(f".{target.name}.{os.getpid()}-{secrets.token_hex(4)}.part")


@contextmanager
def written_whole(target: Path) -> Iterator[Path]:
    """Yield a part file that replaces the target at the end, and is deleted if something fails."""
    part = part_of(target)
    try:
        yield part
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
