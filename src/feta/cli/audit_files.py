"""Audit files: the four files of an audit, described in docs/reference/formats.md."""

import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import IO

from feta.auditing.block import AuditedBlock
from feta.auditing.report_data import ReportData
from feta.io.sanitize import json_text, plain, write_row
from feta.model import Model
from feta.report.audit_json import audit_json
from feta.report.audit_tables import AuditTables
from feta.report.html import html

FILES = ("pairs.csv", "verdicts.csv", "report.html", "audit.json")


class AuditFiles:
    """Writer of the four files; they appear complete at the end, or not at all.

    The folder must exist, and this process must hold its lock (`folder_lock.py`).
    """

    def __init__(self, folder: Path | None, model: Model) -> None:
        self.folder, self.model = folder, model
        self.streams: dict[str, IO[str]] = {}
        self.tables = AuditTables(model)
        self.token = f"{os.getpid()}-{secrets.token_hex(4)}"  # in the names of part files

    def __enter__(self) -> "AuditFiles":
        if self.folder is not None:
            self._remove_old_parts()
            for name, header in self.tables.headers.items():
                self.streams[name] = self._part(name).open("w", encoding="utf-8", newline="")
                write_row(self.streams[name], header)
        return self

    def __exit__(self, *_: object) -> None:
        if not self.streams:  # `finish` has closed and renamed them
            return
        for stream in self.streams.values():
            with suppress(OSError):  # on a full disk, closing fails again
                stream.close()
        for name in FILES:
            self._part(name).unlink(missing_ok=True)

    def _part(self, name: str) -> Path:
        assert self.folder is not None
        return self.folder / f".{name}.{self.token}.part"

    def _remove_old_parts(self) -> None:
        """Delete the part files of a killed audit; the lock excludes other writers."""
        assert self.folder is not None
        for name in FILES:
            for part in self.folder.glob(f".{name}.*part"):
                part.unlink(missing_ok=True)

    def write(self, audited: AuditedBlock) -> None:
        """Add the rows of one block."""
        if self.folder is None:
            return
        with self._described_errors():
            self.tables.write(audited, self.streams)

    def append(self, tables: Mapping[str, Path]) -> None:
        """Add the rows of tables that have headers themselves."""
        with self._described_errors():
            for name, path in tables.items():
                with path.open(encoding="utf-8", newline="") as part:
                    part.readline()
                    shutil.copyfileobj(part, self.streams[name])

    @contextmanager
    def _described_errors(self) -> Iterator[None]:
        """Name the folder and the remedy in an error of the disk, which names neither."""
        try:
            yield
        except OSError as error:
            what = (
                f"{error.strerror}; finished rows are kept: "
                "free some space and run the same command again"
            )
            raise OSError(error.errno, what, str(self.folder)) from None

    def replaced(self, report: ReportData) -> str:
        """Describe a finished audit of another model or table that `finish` will replace."""
        if self.folder is None:
            return ""
        try:
            old = json.loads((self.folder / "audit.json").read_bytes())
            model, data = old["model"], old["data"]
            same = (
                model["fingerprint"] == self.model.fingerprint
                and old["data_sha256"] == report.source.data_sha256
            )
            name = model["file"] or model["fingerprint"]
        except (OSError, ValueError, LookupError, TypeError, RecursionError):
            return ""  # not an audit
        return "" if same else f"an audit of {plain(name)} on {plain(data)}"

    def finish(self, report: ReportData) -> ReportData:
        """Complete the files and rename them; return the report with their digests."""
        if self.folder is None:
            return report
        with self._described_errors():
            for stream in self.streams.values():
                stream.close()
            digests = {name: _digest(self._part(name)) for name in sorted(self.streams)}
            report = replace(report, files=digests)
            content = json_text(audit_json(report), indent=2)
            self._part("report.html").write_text(html(report), encoding="utf-8")
            self._part("audit.json").write_text(content, encoding="utf-8")
            for name in FILES:
                self._part(name).replace(self.folder / name)
        self.streams.clear()
        return report


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
