"""Progress: a bar with an estimate of the time left, on standard error."""

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)


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
