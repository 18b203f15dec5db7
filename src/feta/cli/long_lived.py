"""What a command has loaded before its long part lives until its end; Python need not check it."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def long_lived() -> Iterator[None]:
    """Leave everything that exists already out of garbage collections.

    With pandas and a model's library loaded, a full collection takes a tenth of a second.
    """
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
