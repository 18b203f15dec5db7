"""Callbacks that report the progress of long work."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

# Called with the fraction of the work that is done, from 0 to 1.
Advance = Callable[[float], None]

# Called with a description of the work; the context ends with the work.
Watch = Callable[[str], AbstractContextManager[Advance]]


@contextmanager
def unwatched(_description: str) -> Iterator[Advance]:
    """Report nothing."""
    yield lambda _fraction: None
