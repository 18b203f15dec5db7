"""Stopping: interrupts an audit in this process after some rows, as Ctrl-C does."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from feta.report.report import ReportBuilder


@contextmanager
def stopped_after(rows: int | None, first: Callable[[], object] = lambda: None) -> Iterator[None]:
    """Call `first` and interrupt before the next row is counted; None interrupts nothing."""
    original, taken = ReportBuilder.take, 0

    def take(self: ReportBuilder, *arguments: Any, **options: Any) -> None:  # noqa: ANN401 - passed on
        nonlocal taken
        if taken == rows:
            first()
            raise KeyboardInterrupt
        taken += 1
        original(self, *arguments, **options)

    setattr(ReportBuilder, "take", take)  # noqa: B010 - a method is no variable
    try:
        yield
    finally:
        setattr(ReportBuilder, "take", original)  # noqa: B010 - the same
