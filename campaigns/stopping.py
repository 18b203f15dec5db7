"""Interruption of an audit in this process after some rows, as by Ctrl-C."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from unittest.mock import patch

from feta.auditing import executor
from feta.auditing.block import AuditedBlock
from feta.auditing.results import AuditResults


@contextmanager
def stopped_after(
    rows: int | None, before_interrupt: Callable[[], object] = lambda: None
) -> Iterator[None]:
    """Call `before_interrupt` and interrupt when this many rows are counted; None: never."""
    if rows is None:
        yield
        return
    original, n_rows = AuditResults.add, 0

    def add(self: AuditResults, audited: AuditedBlock) -> None:
        nonlocal n_rows
        if n_rows == rows:
            before_interrupt()
            raise KeyboardInterrupt
        n_rows += len(audited.block)
        original(self, audited)

    # Blocks of one row, because an audit is interrupted between two blocks.
    with patch.object(AuditResults, "add", add), patch.object(executor, "MAX_PEOPLE", 1):
        yield
