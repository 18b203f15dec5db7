"""Signals: what SIGINT and SIGTERM do while a command runs and when it ends.

A thread in compiled code that outlives the interpreter aborts the process (SIGABRT). A signal
during the interpreter's shutdown kills the process by that signal. So an interrupted process
ignores further signals and does not wait for the interpreter to shut down.
"""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

HANDLED_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def terminable() -> Iterator[None]:
    """Treat SIGTERM like Ctrl-C, so that finished work is kept."""
    if not _in_main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Defer an interruption to the end of the block."""
    if not _in_main_thread():
        yield
        return
    pending: list[int] = []
    handled = [number for number in HANDLED_SIGNALS if callable(signal.getsignal(number))]
    handlers = [signal.signal(one, lambda number, _: pending.append(number)) for one in handled]
    try:
        yield
    finally:
        for number, handler in zip(handled, handlers, strict=True):
            signal.signal(number, handler)
    if pending:
        raise KeyboardInterrupt


def ignore_signals() -> None:
    """Ignore further interruptions, also one that arrives during this call."""
    if not _in_main_thread():
        return
    for number in HANDLED_SIGNALS:
        while signal.getsignal(number) is not signal.SIG_IGN:
            with suppress(KeyboardInterrupt):
                signal.signal(number, signal.SIG_IGN)


def exit_now(code: int) -> NoReturn:
    """Flush the standard streams and end the process without the interpreter's shutdown."""
    ignore_signals()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # the reader has closed it
            stream.flush()
    os._exit(code)


def _in_main_thread() -> bool:
    """Return whether signal handlers can be set here."""
    return threading.current_thread() is threading.main_thread()
