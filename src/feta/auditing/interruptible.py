"""Patience: a long computation that can be interrupted, even while compiled code is at work."""

import threading
from collections.abc import Callable
from typing import ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

# How often the waiting thread looks up; signals are heard then.
LOOK = 0.1

_busy: set[threading.Thread] = set()


def run_interruptibly(
    call: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
) -> Result:
    """Compute in another thread, since a signal is heard only between two steps of the main one."""
    results: list[Result] = []
    errors: list[BaseException] = []

    def compute() -> None:
        try:
            results.append(call(*args, **kwargs))
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=compute, daemon=True)
    _busy.add(thread)
    thread.start()
    while thread.is_alive():
        thread.join(LOOK)
    _busy.discard(thread)
    if errors:
        raise errors[0]
    return results[0]


def anybody_busy() -> bool:
    """Say whether an interrupted computation still runs; the process must then end without waiting."""
    return any(thread.is_alive() for thread in _busy)
