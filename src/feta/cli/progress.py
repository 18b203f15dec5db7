"""Progress bars with an estimate of the remaining time, on standard error."""

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
    """Return a bar that disappears at the end; it prints nothing if stderr is no terminal."""
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
def show_progress(description: str, *, total: float | None = None) -> Iterator[Advance]:
    """Show a bar for one task; without a total it pulses until the first share is known."""
    with progress_bar() as progress:
        task = progress.add_task(description, total=total)
        yield lambda share: progress.update(task, completed=share, total=1.0)
