"""Download of a file into the user's cache; a file with a wrong checksum is not kept.

This is the only place outside the command line that prints: users must know which files were
downloaded, and under which terms. An interrupted download stays next to its final path in
`….part`, and the next one resumes there; `….tag` contains the server's version of the file.
"""

import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from feta.datasets.source import DatasetSource
from feta.errors import DatasetError

if TYPE_CHECKING:
    import requests

FOLDER_VARIABLE = "FETA_DATA_DIR"
CHUNK_BYTES = 1 << 13  # at most this much is lost if a connection breaks
TIMEOUT_SECONDS = 30.0  # without any data from the server
CONTENT_STATUSES = (200, 206, 416)  # the full file, a part of it, or no such part
PARTIAL_CONTENT = 206
INTERRUPTED = "was interrupted; load the dataset again to resume"

Advance = Callable[[int, int | None], None]  # called with the bytes so far and in total


def fetch(source: DatasetSource) -> Path:
    """Return the path of the cached file; download a missing or damaged file first."""
    import pooch  # noqa: PLC0415 - slow to import, and rarely needed

    path = Path(pooch.os_cache("feta")) / source.folder / source.file
    if _is_valid(source, path):
        return path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _locked(path.parent):
            if not _is_valid(source, path):
                _complete(source, path)
    except OSError as error:  # of the disk; `_transfer` handles those of the network
        raise _failure(source, f"could not be stored in {path.parent}: {error}") from error
    return path


def _complete(source: DatasetSource, path: Path) -> None:
    """Download what is missing; move the file to its path if its checksum is right."""
    part, tag = (path.with_name(f"{path.name}.{ending}") for ending in ("part", "tag"))
    if not _is_valid(source, part):  # a valid part only needs to be renamed
        try:
            with part.open("ab") as file:
                _transfer(source, file, tag)
        finally:
            if not part.stat().st_size:
                part.unlink()
    checksum = source.checksum_of(part.read_bytes())
    tag.unlink(missing_ok=True)
    if checksum != source.checksum:
        part.unlink()
        raise _failure(
            source,
            f"has a wrong checksum: got {checksum}; expected {source.checksum}; "
            "the file was deleted: load the dataset again",
        )
    part.replace(path)


def _transfer(source: DatasetSource, part: IO[bytes], tag: Path) -> None:
    """Download the rest of a file, or all of it if the server does not support ranges."""
    import requests  # noqa: PLC0415 - slow to import, and rarely needed

    console = Console(stderr=True)
    size = part.tell()
    rest = f", starting at byte {size:,}" if size else ""
    what = f"downloading {source.title} once from {source.address} into {tag.parent}{rest}"
    _print(console, what)
    _print(console, f"terms: {source.terms}")
    started = False
    try:
        with _request(source, part, tag) as response, _bar(source.title, console) as advance:
            started = True
            length = response.headers.get("Content-Length")
            total = part.tell() + int(length) if length else None
            for chunk in response.iter_content(CHUNK_BYTES):
                part.write(chunk)
                advance(part.tell(), total)
    except requests.RequestException as error:
        raise _failure(source, _reason(error, started=started)) from error
    if total is not None and part.tell() < total:
        raise _failure(source, INTERRUPTED)


def _request(source: DatasetSource, part: IO[bytes], tag: Path) -> "requests.Response":
    """Request the missing bytes; start over if the server's answer does not continue the part."""
    import requests  # noqa: PLC0415

    size = part.tell()
    # A compressed transfer would announce another length than that of the file.
    headers = {"Accept-Encoding": "identity"}
    if size:
        headers["Range"] = f"bytes={size}-"
        if tag.is_file():  # the rest of this version, or all of another
            headers["If-Range"] = tag.read_text(encoding="latin-1")
    response = requests.get(source.address, headers=headers, stream=True, timeout=TIMEOUT_SECONDS)
    # Other statuses (busy, not found) say nothing about the part, so it is kept.
    if size and response.status_code in CONTENT_STATUSES and not _continues(response, size):
        part.seek(0)
        part.truncate()
        if response.status_code != requests.codes.ok:
            response.close()
            return _request(source, part, tag)
    response.raise_for_status()
    version = response.headers.get("ETag") or response.headers.get("Last-Modified") or ""
    if version and not version.startswith("W/"):  # a weak tag does not identify the bytes
        tag.write_text(version, encoding="latin-1")
    else:
        tag.unlink(missing_ok=True)
    return response


def _continues(response: "requests.Response", size: int) -> bool:
    """Return whether the response starts where the part ends."""
    start = re.match(r"bytes (\d+)-", response.headers.get("Content-Range", ""))
    partial = response.status_code == PARTIAL_CONTENT
    return partial and start is not None and int(start[1]) == size


def _is_valid(source: DatasetSource, path: Path) -> bool:
    return path.is_file() and source.checksum_of(path.read_bytes()) == source.checksum


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock a folder against other processes; the system releases the lock of a killed process."""
    if sys.platform == "win32":
        yield
        return
    import fcntl  # noqa: PLC0415 - not on Windows

    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _reason(error: OSError, *, started: bool) -> str:
    response = getattr(error, "response", None)
    if response is not None:
        return f"was refused: the server answered {response.status_code} {response.reason}"
    return INTERRUPTED if started else "could not be reached (is this machine online?)"


def _failure(source: DatasetSource, what: str) -> DatasetError:
    root = os.environ.get(FOLDER_VARIABLE)
    folder = f"{FOLDER_VARIABLE} ({root})" if root else "a folder"
    then = "" if root else f", and set {FOLDER_VARIABLE} to that folder"
    return DatasetError(
        f"{source.title}: {source.address} {what}. "
        f"Or download the file manually, save it in {folder} as {source.place}{then}"
    )


def _print(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)


@contextmanager
def _bar(title: str, console: Console) -> Iterator[Advance]:
    """Show a bar of the bytes, if stderr is a terminal."""
    progress = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
        console=console,
        disable=not console.is_terminal,
        transient=True,
    )
    task = progress.add_task(title, total=None)
    with progress:
        yield lambda size, total: progress.update(task, completed=size, total=total)
