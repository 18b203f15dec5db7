"""Download: a file fetched once into the user's cache, and kept only if its checksum is right.

This is the one place outside the command line that says something: nobody should find files, or terms
agreed to, that they never heard of. What a broken download got stays beside the file's place, in
`….part`, and the next one goes on from there; `….tag` names the version that the server gave.
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
CHUNK_BYTES = 1 << 13  # what is lost of a connection that breaks
QUIET_SECONDS = 30.0  # a server that says nothing for so long has gone
ANSWERED = (200, 206, 416)  # all of the file, a part of it, or that there is no such part
BROKEN_OFF = "broke off before its end; load it again, and it goes on from there"

Advance = Callable[[int, int | None], None]  # bytes there are, and bytes there will be


def fetch(source: DatasetSource) -> Path:
    """Give the cached file, after downloading it, or the rest of it, if it is not there or is damaged."""
    import pooch  # noqa: PLC0415 - slow to import, and seldom needed

    path = Path(pooch.os_cache("feta")) / source.folder / source.file
    if _is_right(source, path):
        return path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _alone_in(path.parent):
            if not _is_right(source, path):
                _complete(source, path)
    except OSError as error:  # of the disk: those of the network are told in _transfer
        raise _failure(source, f"could not be stored in {path.parent}: {error}") from error
    return path


def _complete(source: DatasetSource, path: Path) -> None:
    """Get what is missing, and put the file in its place if it is the right one."""
    part, tag = (path.with_name(f"{path.name}.{ending}") for ending in ("part", "tag"))
    if not _is_right(source, part):  # else the last one was stopped before its last step
        try:
            with part.open("ab") as file:
                _transfer(source, file, tag)
        finally:
            if not part.stat().st_size:
                part.unlink()
    got = source.checksum_of(part.read_bytes())
    tag.unlink(missing_ok=True)
    if got != source.checksum:
        part.unlink()
        what = f"must have the checksum {source.checksum}, got {got}; it was not kept: load it again, from its beginning"
        raise _failure(source, what)
    part.replace(path)


def _transfer(source: DatasetSource, part: IO[bytes], tag: Path) -> None:
    """Ask for the rest of a file, or for all of it where the server does not give rests."""
    import requests  # noqa: PLC0415 - slow to import, and seldom needed

    console = Console(stderr=True)
    there = part.tell()
    rest = f", from byte {there:,} on" if there else ""
    _say(console, f"downloading {source.title} once from {source.address} into {tag.parent}{rest}")
    _say(console, f"terms: {source.terms}")
    begun = False
    try:
        with _asked(source, part, tag) as answer, _bar(source.title, console) as advance:
            begun = True
            announced = answer.headers.get("Content-Length")
            total = part.tell() + int(announced) if announced else None
            for chunk in answer.iter_content(CHUNK_BYTES):
                part.write(chunk)
                advance(part.tell(), total)
    except requests.RequestException as error:
        raise _failure(source, _reason(error, begun=begun)) from error
    if total is not None and part.tell() < total:
        raise _failure(source, BROKEN_OFF)


def _asked(source: DatasetSource, part: IO[bytes], tag: Path) -> "requests.Response":
    """Ask for what is missing; what does not go on from what is there is asked for as a whole."""
    import requests  # noqa: PLC0415

    there = part.tell()
    # Unpacked on the way, the announced length would not be the file's.
    headers = {"Accept-Encoding": "identity"}
    if there:
        headers["Range"] = f"bytes={there}-"
        if tag.is_file():  # the rest of this version, or all of another
            headers["If-Range"] = tag.read_text(encoding="latin-1")
    answer = requests.get(source.address, headers=headers, stream=True, timeout=QUIET_SECONDS)
    # A server that is busy, or lost the file, says nothing about what is there: that stays.
    if there and answer.status_code in ANSWERED and not _goes_on(answer, there):
        part.seek(0)
        part.truncate()
        if answer.status_code != requests.codes.ok:
            answer.close()
            return _asked(source, part, tag)
    answer.raise_for_status()
    version = answer.headers.get("ETag") or answer.headers.get("Last-Modified") or ""
    if version and not version.startswith("W/"):  # a weak one names no bytes
        tag.write_text(version, encoding="latin-1")
    else:
        tag.unlink(missing_ok=True)
    return answer


def _goes_on(answer: "requests.Response", there: int) -> bool:
    start = re.match(r"bytes (\d+)-", answer.headers.get("Content-Range", ""))
    return answer.status_code == 206 and start is not None and int(start[1]) == there  # noqa: PLR2004 - partial content


def _is_right(source: DatasetSource, path: Path) -> bool:
    return path.is_file() and source.checksum_of(path.read_bytes()) == source.checksum


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Let one process at a time work in a folder; the system forgets the lock with the process."""
    if sys.platform == "win32":
        yield
        return
    import fcntl  # noqa: PLC0415 - not everywhere

    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _reason(error: OSError, *, begun: bool) -> str:
    response = getattr(error, "response", None)
    if response is not None:
        return f"was not given: the server answered {response.status_code} {response.reason}"
    return BROKEN_OFF if begun else "could not be reached (is this machine online?)"


def _failure(source: DatasetSource, what: str) -> DatasetError:
    named = os.environ.get(FOLDER_VARIABLE)
    where = f"{FOLDER_VARIABLE} ({named})" if named else "a folder of your own"
    then = "" if named else f", and set {FOLDER_VARIABLE} to that folder"
    return DatasetError(
        f"{source.title}: {source.address} {what}. "
        f"Otherwise get the file by hand, put it into {where} as {source.place}{then}"
    )


def _say(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)


@contextmanager
def _bar(title: str, console: Console) -> Iterator[Advance]:
    """Count bytes where somebody looks on."""
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
        yield lambda there, total: progress.update(task, completed=there, total=total)
