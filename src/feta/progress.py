"""Progress of long work, for whoever shows it."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

# Called with the share of the work that is done, from 0 to 1.
Advance = Callable[[float], None]

# Called with a description of the work; the context ends with the work.
Watch = Callable[[str], AbstractContextManager[Advance]]


@contextmanager
def unwatched(_description: str) -> Iterator[Advance]:
    """Show nothing."""
    yield lambda _share: None
