"""Notices: what a user should know besides the results, on standard error."""

from rich.console import Console
from rich.text import Text

from feta.io.sanitize import listed


def notice(message: str) -> None:
    """Print one notice."""
    Console(stderr=True, soft_wrap=True).print(Text(f"note: {message}", style="dim"))


def note_ignored(names: list[str]) -> None:
    """Print which columns of a table are ignored; columns without a name are not mentioned."""
    names = [name for name in names if name]
    if names:
        are = "columns are" if len(names) > 1 else "column is"
        notice(f"{len(names):,} {are} not in the schema and ignored: {listed(names)}")
