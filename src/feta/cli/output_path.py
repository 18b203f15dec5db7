"""Out: where results go, looked at before any work is done."""

from collections.abc import Iterable
from pathlib import Path

from feta.errors import SchemaError


def check_file(out: Path | None, inputs: Iterable[Path]) -> None:
    """Raise unless a file can be written there without writing over what is read."""
    if out is None:
        return
    if not out.parent.is_dir():
        raise SchemaError(f"{out}: the folder {out.parent} must exist; make it first")
    if out.is_dir():
        raise SchemaError(f"{out}: --out must name a file, got a folder")
    for one in inputs:
        if one.exists() and out.exists() and out.samefile(one):
            raise SchemaError(f"{out}: --out must not be a file that is read; name another one")


def check_folder(out: Path | None) -> None:
    """Raise unless results can be put into this folder."""
    if out is not None and out.exists() and not out.is_dir():
        raise SchemaError(f"{out}: --out must name a folder, got a file")
