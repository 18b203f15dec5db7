"""What a test leaves behind in its process: signal handlers and imported modules.

Background jobs and their children ignore SIGINT. A command that ends in this process ignores
SIGINT and SIGTERM, which the worker processes of later tests would inherit.
"""

import signal
import sys
from collections.abc import Iterator
from pathlib import Path

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


@pytest.fixture
def forgotten_imports(tmp_path: Path) -> Iterator[None]:
    """Forget the modules imported from the test's folder: other tests have some of that name."""
    search_path = list(sys.path)
    yield
    sys.path[:] = search_path
    for name, module in list(sys.modules.items()):
        if Path(getattr(module, "__file__", None) or "/").is_relative_to(tmp_path):
            del sys.modules[name]
