"""Calls with a time limit, of code that may never return."""

import contextvars
import threading
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")

_hanging: set[threading.Thread] = set()  # calls that did not return in time


class TookTooLong(Exception):
    """The call did not return within its time limit; it may still run."""


def call_within(seconds: float | None, call: Callable[[], Result]) -> Result:
    """Return the result of a call, or raise `TookTooLong`.

    Python cannot end a thread. A call that takes too long remains in a daemon thread, which does
    not keep the process alive. The call sees the context of the caller, such as numpy's error
    state.
    """
    if seconds is None:
        return call()
    results: list[Result] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(call())
        except BaseException as error:  # every error belongs to the caller
            errors.append(error)

    context = contextvars.copy_context()
    thread = threading.Thread(target=context.run, args=(run,), daemon=True)
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors[0]
    if not results:
        _hanging.add(thread)
        raise TookTooLong
    return results[0]


def is_hanging() -> bool:
    """Return whether a call that took too long still runs.

    The process must then exit without waiting for it.
    """
    return any(thread.is_alive() for thread in _hanging)
