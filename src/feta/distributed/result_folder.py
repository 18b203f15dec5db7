"""Results of parts in a folder: written aside, renamed, and reused while their stamp fits.

The name of a result depends on the name of its part only. The receipt of a part is written last. It
contains the stamp (what was asked, and the digest of the part) and the digests of the other files,
so that a result is complete, or does not count.
"""

import errno
import hashlib
import json
import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from feta.distributed.dataset import PartFacts, result_name
from feta.errors import SchemaError
from feta.io.regular_file import atomic_write
from feta.io.sanitize import joined, json_text

PARTS, QUESTION, COMMIT = "parts", "question.json", "commit.json"
RECEIPT = "receipt.json"

# A full disk, a full quota, and a file that reaches the limit of its size.
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Receipt:
    """A finished part: its files by kind, with their digests, and what else was stored."""

    part: str
    rows: int
    files: dict[str, str]
    content: Json
    sha256: str  # of the receipt's file


@dataclass(frozen=True, slots=True)
class ResultFolder:
    """The folder of one run; `question` names everything on which results depend but the rows."""

    folder: Path
    question: Json

    def open(self) -> None:
        """Create the folder; refuse one with results of another question."""
        path = self.folder / QUESTION
        if path.exists() and self._has_receipts():
            different = self._differences(path)
            if different:
                raise SchemaError(
                    f"{self.folder}: the folder has results of another run: got another "
                    f"{joined(different)}; expected the same; name another --out, or delete "
                    f"{PARTS} and {QUESTION} in this folder"
                )
        (self.folder / PARTS).mkdir(parents=True, exist_ok=True)
        (self.folder / COMMIT).unlink(missing_ok=True)  # it is written again at the end
        with atomic_write(path) as aside:
            aside.write_text(json_text(self.question, indent=2), encoding="utf-8")

    def _has_receipts(self) -> bool:
        return any((self.folder / PARTS).glob(f"*.{RECEIPT}"))

    def _differences(self, path: Path) -> list[str]:
        try:
            known, asked = json.loads(path.read_bytes()), json.loads(json_text(self.question))
            names = sorted(asked.keys() | known.keys())
            return [name for name in names if asked.get(name) != known.get(name)]
        except (ValueError, AttributeError):
            return ["question: the file is damaged"]

    def path(self, facts: PartFacts, kind: str) -> Path:
        """Return the path of one file of a part's results."""
        return self.folder / PARTS / f"{result_name(facts.part)}.{kind}"

    def stamp(self, facts: PartFacts) -> Json:
        """Return everything on which the results of a part depend."""
        part = {"part": facts.part.name, "sha256": facts.sha256, "before": facts.before}
        return {"question": _digest(json_text(self.question).encode()), **part}

    def receipt(self, facts: PartFacts) -> Receipt | None:
        """Return the receipt of a finished part; None if it or a file is missing, or another."""
        try:
            stored = self.path(facts, RECEIPT).read_bytes()
            body = json.loads(stored)
            fits = body["stamp"] == self.stamp(facts) and body["digest"] == _digest_of(body)
            files: dict[str, str] = body["files"]
            if not fits or not self._intact(facts, files):
                return None
            return Receipt(facts.part.name, body["rows"], files, body["content"], _digest(stored))
        except (OSError, ValueError, LookupError, TypeError):
            return None

    def _intact(self, facts: PartFacts, files: Mapping[str, str]) -> bool:
        return all(_digest_of_file(self.path(facts, kind)) == files[kind] for kind in files)

    @contextmanager
    def writing(self, facts: PartFacts, kinds: Sequence[str]) -> Iterator["PartWriter"]:
        """Yield a writer of a part's files; they are deleted unless it has finished."""
        writer = PartWriter(self, facts)
        try:
            with describe_disk_errors(self.folder):
                writer.start(kinds)
                yield writer
        finally:
            writer.discard()

    def commit(self, receipts: Sequence[Receipt], more: Mapping[str, object]) -> None:
        """Write the commit file: readers trust only what it lists."""
        parts = [
            {"part": one.part, "rows": one.rows, "files": one.files, "receipt": one.sha256}
            for one in receipts
        ]
        content = {"format": "feta-parts", "version": 1, "question": self.question, **more}
        with describe_disk_errors(self.folder), atomic_write(self.folder / COMMIT) as aside:
            aside.write_text(json_text(content | {"parts": parts}, indent=1), encoding="utf-8")

    def remove_unfinished(self) -> None:
        """Delete the unfinished files of killed workers; no worker may be running."""
        for path in (self.folder / PARTS).glob(".*.part"):
            path.unlink(missing_ok=True)


class PartWriter:
    """Writer of the files of one part."""

    def __init__(self, results: ResultFolder, facts: PartFacts) -> None:
        self._results, self._facts = results, facts
        self._token = f"{os.getpid()}-{secrets.token_hex(4)}"
        self.streams: dict[str, IO[str]] = {}

    def start(self, kinds: Sequence[str]) -> None:
        """Open the files."""
        for kind in kinds:
            self.streams[kind] = self._aside(kind).open("w", encoding="utf-8", newline="")

    def finish(self, rows: int, content: Json) -> Receipt:
        """Complete the files and rename them, the receipt last."""
        for stream in self.streams.values():
            stream.close()
        files = {kind: _digest_of_file(self._aside(kind)) for kind in self.streams}
        body = {"stamp": self._results.stamp(self._facts), "rows": rows, "files": files}
        body |= {"content": content}
        body["digest"] = _digest_of(body)
        self._aside(RECEIPT).write_text(json_text(body), encoding="utf-8")
        sha256 = _digest_of_file(self._aside(RECEIPT))
        for kind in [*self.streams, RECEIPT]:
            self._aside(kind).replace(self._results.path(self._facts, kind))
        self.streams.clear()
        return Receipt(self._facts.part.name, rows, files, {}, sha256)

    def discard(self) -> None:
        """Delete unfinished files."""
        for kind, stream in self.streams.items():
            with suppress(OSError):  # on a full disk, closing fails again
                stream.close()
            self._aside(kind).unlink(missing_ok=True)
        self._aside(RECEIPT).unlink(missing_ok=True)

    def _aside(self, kind: str) -> Path:
        path = self._results.path(self._facts, kind)
        return path.with_name(f".{path.name}.{self._token}.part")


@contextmanager
def describe_disk_errors(folder: Path) -> Iterator[None]:
    """Name the folder and the remedy in an error of the disk, which names neither."""
    try:
        yield
    except OSError as error:
        if error.filename is not None and not Path(error.filename).is_relative_to(folder):
            raise  # an input
        remedy = "free some space" if error.errno in FULL else "correct this"
        what = f"{error.strerror}; finished parts are kept: {remedy} and run the same command again"
        raise OSError(error.errno, what, str(folder)) from None


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _digest_of(body: Json) -> str:
    """Return the digest of a receipt without this digest."""
    return _digest(json_text({key: body[key] for key in sorted(body) if key != "digest"}).encode())


def _digest_of_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
