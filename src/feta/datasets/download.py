"""Download: a file fetched once into the user's cache, and kept only if its checksum is right.

This is the one place outside the command line that says something: nobody should find files, or terms
agreed to, that they never heard of.
"""

import os
import tempfile
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from feta.datasets.source import Source
from feta.errors import DatasetError

FOLDER_VARIABLE = "FETA_DATA_DIR"
CHUNK_BYTES = 1 << 16


def fetch(source: Source) -> Path:
    """Give the cached file, after downloading it if it is not there or is damaged.

    A download that fails or is interrupted leaves nothing behind; the files are small enough to begin again.
    """
    import pooch  # noqa: PLC0415 - slow to import, and seldom needed

    path = Path(pooch.os_cache("feta")) / source.folder / source.file
    if path.is_file() and source.checksum_of(path.read_bytes()) == source.checksum:
        return path
    console = Console(stderr=True)
    _say(console, f"downloading {source.title} once from {source.address} into {path.parent}")
    _say(console, f"terms: {source.terms}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent, prefix="part-") as folder:
            part = Path(folder) / source.file
            _transfer(source, part, console)
            got = source.checksum_of(part.read_bytes())
            if got != source.checksum:
                what = f"must have the checksum {source.checksum}, got {got}; it was not kept"
                raise _failure(source, what)
            part.replace(path)
    except OSError as error:  # of the disk: those of the network are told in _transfer
        raise _failure(source, f"could not be stored in {path.parent}: {error}") from error
    return path


def _transfer(source: Source, part: Path, console: Console) -> None:
    import pooch  # noqa: PLC0415

    with part.open("wb") as file, _Bar(source.title, console) as bar:
        # Unpacked on the way, the announced length would not be the file's.
        headers = {"Accept-Encoding": "identity"}
        download = pooch.HTTPDownloader(progressbar=bar, chunk_size=CHUNK_BYTES, headers=headers)
        try:
            download(source.address, file, None)
        except OSError as error:
            if error.errno is not None:  # the disk's; the network's carry no number
                raise
            raise _failure(source, _reason(error, begun=bar.total is not None)) from error


def _reason(error: OSError, *, begun: bool) -> str:
    response = getattr(error, "response", None)
    if response is not None:
        return f"was not given: the server answered {response.status_code} {response.reason}"
    if begun:
        return "broke off before its end; load it again"
    return "could not be reached (is this machine online?)"


def _failure(source: Source, what: str) -> DatasetError:
    named = os.environ.get(FOLDER_VARIABLE)
    where = f"{FOLDER_VARIABLE} ({named})" if named else "a folder of your own"
    then = "" if named else f", and set {FOLDER_VARIABLE} to that folder"
    return DatasetError(
        f"{source.title}: {source.address} {what}. "
        f"Otherwise get the file by hand, put it into {where} as {source.place}{then}"
    )


def _say(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)


class _Bar:
    """A progress bar as pooch wants it; where nobody looks on, it draws nothing."""

    def __init__(self, title: str, console: Console) -> None:
        self.total: int | None = (
            None  # pooch sets it to the announced length, or 0, at the first answer
        )
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            DownloadColumn(),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
            transient=True,
        )
        self._task = self._progress.add_task(title, total=None)

    def __enter__(self) -> "_Bar":
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def update(self, n_bytes: int) -> None:
        """Go on by so many bytes."""
        self._progress.update(self._task, total=self.total or None, advance=n_bytes)

    def reset(self) -> None:
        """Begin again at zero: pooch does so before it fills the bar at the end."""
        self._progress.reset(self._task)

    def close(self) -> None:
        """Do nothing: the bar ends with its block."""
