"""A lock that lets one process at a time write to a folder.

The operating system holds the lock on an open file, so a killed process releases it. The file
contains the process id of its holder.
"""

import os
import sys
import time
from contextlib import suppress
from pathlib import Path

from feta.errors import SchemaError

NAME = ".feta.lock"

# The last holder may remove the folder while it is being opened.
ATTEMPTS = 100

# The byte that Windows locks: beyond the text, which other processes must be able to read.
LOCKED_BYTE = 2**20


class FolderLock:
    """The right to write to a folder, which is created if necessary; None locks nothing."""

    def __init__(self, folder: Path | None, *, work: str) -> None:
        self.folder, self.work = folder, work
        self.created: list[Path] = []  # folders that did not exist before, innermost first
        self._handle: int | None = None

    def __enter__(self) -> "FolderLock":
        if self.folder is None:
            return self
        self.created = [path for path in (self.folder, *self.folder.parents) if not path.exists()]
        for _ in range(ATTEMPTS):
            self.folder.mkdir(parents=True, exist_ok=True)
            with suppress(FileNotFoundError):
                if self._acquire(self.folder / NAME):
                    return self
        raise SchemaError(f"{self.folder}: the folder is removed repeatedly; name another --out")

    def _acquire(self, path: Path) -> bool:
        """Lock the file; return False if its last holder has removed it meanwhile."""
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            try:
                if not _lock(handle):
                    raise SchemaError(self._refusal(path))
            except OSError as error:
                what = f"the folder cannot be locked ({error.strerror}); name another --out"
                raise OSError(error.errno, what, str(self.folder)) from None
            if os.path.samestat(os.fstat(handle), path.stat()):
                os.ftruncate(handle, 0)
                os.write(handle, _holder().encode())
                self._handle, handle = handle, -1
                return True
            return False
        finally:
            if handle >= 0:
                os.close(handle)

    def _refusal(self, path: Path) -> str:
        with suppress(OSError, UnicodeError):
            holder = path.read_text(encoding="utf-8").strip()
            return (
                f"{self.folder}: another {self.work} is writing to this folder "
                f"({holder or 'just started'}); wait for it, or name another --out"
            )
        return f"{self.folder}: another {self.work} was writing to this folder; try again"

    def __exit__(self, *_: object) -> None:
        if self._handle is None or self.folder is None:
            return
        # Removed while it is locked: a process that waits for this file then sees that it is gone.
        with suppress(OSError):
            (self.folder / NAME).unlink()
        os.close(self._handle)
        self._handle = None
        for folder in self.created:
            with suppress(OSError):  # it contains results, or files of others
                folder.rmdir()


def _holder() -> str:
    return f"process {os.getpid()}, since {time.strftime('%Y-%m-%d %H:%M:%S')}\n"


if sys.platform == "win32":
    import msvcrt

    def _lock(handle: int) -> bool:
        """Lock one byte of an open file; return False if another process holds it."""
        os.lseek(handle, LOCKED_BYTE, os.SEEK_SET)
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        finally:
            os.lseek(handle, 0, os.SEEK_SET)
        return True

else:
    import fcntl

    def _lock(handle: int) -> bool:
        """Lock an open file; return False if another process holds it."""
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
