"""Audit files: the four files of an audit, described in docs/reference/formats.md."""

import hashlib
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import IO

import numpy as np

from feta.arrays import Vector
from feta.auditing.finding import Finding
from feta.io.sanitize import json_text, write_row
from feta.model import Model
from feta.report.audit_json import audit_json
from feta.report.html import html
from feta.report.report import Report
from feta.rule import Tolerance
from feta.verdict.counterexample import Counterexample

PAIR_HEADER = [
    "row",
    "id",
    "decision",
    "counterpart decision",
    "score",
    "counterpart score",
    "gap",
    "runtime",
    "replayed",
    "changed",
    "one alone is enough",
]
WRITTEN = ("pairs.csv", "verdicts.csv", "report.html", "audit.json")
VERDICT_HEADER = [
    "row",
    "id",
    "verdict",
    "decision",
    "fair decision",
    "gap",
    "runtime",
    "reason",
    "record",
]


class AuditFiles:
    """An audit's four files; they appear whole when it ends, or not at all.

    The folder must exist and be locked by this process (`folder_lock.py`).
    """

    def __init__(self, folder: Path | None, model: Model) -> None:
        self.folder, self.model = folder, model
        self.streams: dict[str, IO[str]] = {}
        self.names = [attribute.name for attribute in model.space.attributes]
        self.sensitive = [attribute.name for attribute in model.space.sensitive]
        self.token = f"{os.getpid()}-{secrets.token_hex(4)}"  # of this process's part files

    def __enter__(self) -> "AuditFiles":
        if self.folder is not None:
            self._remove_old_parts()
            for name, header in (
                ("pairs.csv", self._pair_header()),
                ("verdicts.csv", VERDICT_HEADER),
            ):
                self.streams[name] = self._part(name).open("w", encoding="utf-8", newline="")
                write_row(self.streams[name], header)
        return self

    def __exit__(self, *_: object) -> None:
        if not self.streams:
            return
        for stream in self.streams.values():  # left over only where something went wrong
            with suppress(OSError):  # what is not yet on a full disk does not go there now
                stream.close()
        for name in WRITTEN:
            self._part(name).unlink(missing_ok=True)

    def _part(self, name: str) -> Path:
        assert self.folder is not None
        return self.folder / f".{name}.{self.token}.part"

    def _remove_old_parts(self) -> None:
        """Delete what a killed audit left; the folder's lock is held, so nobody writes to it."""
        assert self.folder is not None
        for name in WRITTEN:
            for part in self.folder.glob(f".{name}.*part"):
                part.unlink(missing_ok=True)

    def _pair_header(self) -> list[str]:
        """Name the columns; regression: of the lower and of the higher score, often not the row's own."""
        if not isinstance(self.model.rule, Tolerance):
            return [*PAIR_HEADER, *self.names, *(f"counterpart {one}" for one in self.sensitive)]
        renamed = {"score": "lower score", "counterpart score": "higher score"}
        names = [
            f"{one} of the lower score" if one in self.sensitive else one for one in self.names
        ]
        others = [f"{one} of the higher score" for one in self.sensitive]
        return [*(renamed.get(one, one) for one in PAIR_HEADER), *names, *others]

    def write(self, finding: Finding, name: str, person: Vector | None = None) -> None:
        """Add one person; `person` is the encoded record, if the row could be read."""
        if self.folder is None:
            return
        pair = finding.pair
        gap = "" if pair is None else pair.gap
        own, fair = (self.model.describe(one) for one in (finding.decision, finding.fair_decision))
        verdict = [finding.row + 1, name, finding.status, own, fair]
        runtime = "" if finding.status == "not audited" else finding.runtime
        verdict += [gap, runtime, finding.reason, record_digest(person)]
        with self._told():
            write_row(self.streams["verdicts.csv"], verdict)
            if pair is not None:
                write_row(self.streams["pairs.csv"], self._pair_row(finding, pair, name))

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Say where there is no room, and what to do; a file's own error names neither."""
        try:
            yield
        except OSError as error:
            what = (
                f"{error.strerror}; what is done is kept: make room, and run the same command again"
            )
            raise OSError(error.errno, what, str(self.folder)) from None

    def _pair_row(self, finding: Finding, pair: Counterexample, name: str) -> list[object]:
        space = self.model.space
        before, after = space.decode(pair.person), space.decode(pair.counterpart)
        # Regression decides nothing.
        decisions = [self.model.outcomes[one] for one in pair.decisions] or ["", ""]
        changed = [one for one in self.sensitive if before[one] != after[one]]
        replayed = {None: "", True: "yes", False: "no"}[finding.replayed]
        return [
            finding.row + 1,
            name,
            *decisions,
            *pair.margins(self.model.rule).tolist(),
            pair.gap,
            finding.runtime,
            replayed,
            " ".join(changed),
            " ".join(finding.alone),
            *(before[one] for one in self.names),
            *(after[one] for one in self.sensitive),
        ]

    def finish(self, report: Report) -> Report:
        """Put the files in their places; return the report with their digests."""
        if self.folder is None:
            return report
        with self._told():
            for stream in self.streams.values():
                stream.close()
            digests = {name: _digest(self._part(name)) for name in sorted(self.streams)}
            report = replace(report, files=digests)
            content = json_text(audit_json(report), indent=2)
            self._part("report.html").write_text(html(report), encoding="utf-8")
            self._part("audit.json").write_text(content, encoding="utf-8")
            for name in WRITTEN:
                self._part(name).replace(self.folder / name)
        self.streams.clear()
        return report


def record_digest(person: Vector | None) -> str:
    """Identify an encoded record, so that two audits can tell whether an id still names it."""
    if person is None:
        return ""
    # + 0.0 makes −0.0 the 0.0 that it equals.
    return hashlib.sha256((np.asarray(person, "<f8") + 0.0).tobytes()).hexdigest()[:32]


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
