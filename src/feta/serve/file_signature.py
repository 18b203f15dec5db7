"""How a change of a file is noticed without reading it."""

from pathlib import Path

# Number of the file, size, time in nanoseconds.
Signature = tuple[int, int, int]


def signature_of(path: Path) -> Signature | None:
    """Return what a change of the file changes; None while it does not exist."""
    try:
        status = path.stat()
    except OSError:  # it may be replaced right now
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns
