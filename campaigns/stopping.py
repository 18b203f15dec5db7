"""Interruption of an audit in this process after some rows, as by Ctrl-C."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from feta.report.report import ReportBuilder


@contextmanager
def stopped_after(
    rows: int | None, before_interrupt: Callable[[], object] = lambda: None
) -> Iterator[None]:
    """Call `first` and interrupt when this many rows are counted; None does not interrupt."""
    original, n_rows = ReportBuilder.take, 0

    def take(self: ReportBuilder, *arguments: Any, **options: Any) -> None:  # noqa: ANN401 - passed on
        nonlocal n_rows
        if n_rows == rows:
            before_interrupt()
            raise KeyboardInterrupt
        n_rows += 1
        original(self, *arguments, **options)

    setattr(ReportBuilder, "take", take)  # noqa: B010 - mypy rejects an assignment
    try:
        yield
    finally:
        setattr(ReportBuilder, "take", original)  # noqa: B010 - as above
