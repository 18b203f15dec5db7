"""Checks of `--out`, made before any work starts."""

from collections.abc import Iterable
from pathlib import Path

from feta.errors import SchemaError


def check_file(out: Path | None, inputs: Iterable[Path]) -> None:
    """Raise unless a file can be written there without overwriting an input."""
    if out is None:
        return
    if not out.parent.is_dir():
        raise SchemaError(f"{out}: the folder {out.parent} does not exist; create it first")
    if out.is_dir():
        raise SchemaError(f"{out}: --out is a folder; expected a file")
    for path in inputs:
        if path.exists() and out.exists() and out.samefile(path):
            raise SchemaError(f"{out}: --out is an input of this command; name another file")


def check_folder(out: Path | None) -> None:
    """Raise unless results can be written to this folder."""
    if out is not None and out.exists() and not out.is_dir():
        raise SchemaError(f"{out}: --out is a file; expected a folder")
