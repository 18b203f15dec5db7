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
    """Make a bar that goes away when the work is done."""
    return Progress(
        TextColumn("{task.description}", markup=False),  # a file may be called [/].csv
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
