"""Uninterrupted: a few lines that no signal must cut in two; it is heard right after them."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

HANDLED_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def terminable() -> Iterator[None]:
    """Take a polite end (SIGTERM) like Ctrl-C: what is done is kept."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Put off an interruption until the block is done."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pending: list[int] = []
    heard = [one for one in HANDLED_SIGNALS if callable(signal.getsignal(one))]
    before = [signal.signal(one, lambda number, _: pending.append(number)) for one in heard]
    try:
        yield
    finally:
        for number, handler in zip(heard, before, strict=True):
            signal.signal(number, handler)
    if pending:
        raise KeyboardInterrupt
