"""Long computations that Ctrl-C can interrupt, even inside compiled code."""

import threading
from collections.abc import Callable
from typing import ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

# Seconds between two wake-ups of the waiting thread, which handles signals then.
WAKE_UP_SECONDS = 0.1

_running: set[threading.Thread] = set()


def run_interruptibly(
    call: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
) -> Result:
    """Run a call in another thread.

    Python handles signals in the main thread only, and only between two of its bytecodes.
    """
    results: list[Result] = []
    errors: list[BaseException] = []

    def compute() -> None:
        try:
            results.append(call(*args, **kwargs))
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=compute, daemon=True)
    _running.add(thread)
    thread.start()
    while thread.is_alive():
        thread.join(WAKE_UP_SECONDS)
    _running.discard(thread)
    if errors:
        raise errors[0]
    return results[0]


def is_computing() -> bool:
    """Return whether an interrupted computation still runs.

    The process must then exit without waiting for it.
    """
    return any(thread.is_alive() for thread in _running)
