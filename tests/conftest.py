"""Signal handlers of the process that runs the tests.

Background jobs and their children ignore SIGINT. A command that ends in this process ignores
SIGINT and SIGTERM, which the worker processes of later tests would inherit.
"""

import signal
from collections.abc import Iterator

import pytest

signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def signal_handlers() -> Iterator[None]:
    """Restore the signal handlers after each test."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.getsignal(number) for number in numbers]
    yield
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)
