"""Progress: a bar with an estimate of the time left, on standard error."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from feta.progress import Advance


def progress_bar() -> Progress:
    """Make a bar that goes away when the work is done; where nobody looks on, it prints nothing."""
    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}", markup=False),  # a file may be called [/].csv
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=console,
        disable=not console.is_terminal,
        transient=True,
    )


@contextmanager
def watched(description: str) -> Iterator[Advance]:
    """Show a bar for one task; it pulses until the first share of the work is known."""
    with progress_bar() as progress:
        task = progress.add_task(description, total=None)
        yield lambda share: progress.update(task, completed=share, total=1.0)
