"""Audit files: the four files of an audit, described in docs/reference/formats.md."""

import hashlib
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import IO

import numpy as np

from feta.arrays import Matrix
from feta.auditing.block import AuditedBlock
from feta.auditing.finding import Finding
from feta.auditing.record import record_of
from feta.auditing.report_data import ReportData
from feta.io.sanitize import json_text, plain, write_row
from feta.model import Model
from feta.report.audit_json import audit_json
from feta.report.html import html
from feta.scorer.protocol import has_scores
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
FILES = ("pairs.csv", "verdicts.csv", "report.html", "audit.json")
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
    "provenance",
]


class AuditFiles:
    """Writer of the four files; they appear complete at the end, or not at all.

    The folder must exist, and this process must hold its lock (`folder_lock.py`).
    """

    def __init__(self, folder: Path | None, model: Model) -> None:
        self.folder, self.model = folder, model
        self.streams: dict[str, IO[str]] = {}
        self.names = [attribute.name for attribute in model.space.attributes]
        self.sensitive = [attribute.name for attribute in model.space.sensitive]
        self.has_gaps = has_scores(model.scorer)  # False: the model returns labels only
        self.token = f"{os.getpid()}-{secrets.token_hex(4)}"  # in the names of part files

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

    def _pair_header(self) -> list[str]:
        """Return the header of pairs.csv.

        A regression has the lower and the higher score; the row itself may have neither.
        """
        if self.model.rule.tolerance is None:
            return [*PAIR_HEADER, *self.names, *(f"counterpart {name}" for name in self.sensitive)]
        renamed = {"score": "lower score", "counterpart score": "higher score"}
        names = [
            f"{name} of the lower score" if name in self.sensitive else name for name in self.names
        ]
        others = [f"{name} of the higher score" for name in self.sensitive]
        return [*(renamed.get(name, name) for name in PAIR_HEADER), *names, *others]

    def write(self, audited: AuditedBlock) -> None:
        """Add the rows of one block."""
        if self.folder is None:
            return
        block, describe = audited.block, self.model.describe
        digests = iter(record_digests(block.people))
        with self._described_errors():
            for index, (finding, name) in enumerate(
                zip(audited.findings, block.names, strict=True)
            ):
                pair, read = finding.pair, index not in block.unread
                cells = [
                    finding.row + 1,
                    name,
                    finding.status,
                    describe(finding.decision),
                    describe(finding.fair_decision),
                    pair.gap if pair is not None and self.has_gaps else "",
                    finding.runtime if read else "",
                    finding.reason,
                    next(digests) if read else "",
                    "" if finding.verdict is None else finding.verdict.provenance,
                ]
                write_row(self.streams["verdicts.csv"], cells)
                if pair is not None:
                    write_row(self.streams["pairs.csv"], self._pair_row(finding, pair, name))

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

    def _pair_row(self, finding: Finding, pair: Counterexample, name: str) -> list[object]:
        space = self.model.space
        before = record_of(space, pair.person)
        after = record_of(space, pair.counterpart, space.sensitive)
        # A regression makes no decisions.
        decisions = [self.model.outcomes[number] for number in pair.decisions] or ["", ""]
        changed = [column for column in self.sensitive if before[column] != after[column]]
        replayed = {None: "", True: "yes", False: "no"}[finding.replayed]
        return [
            finding.row + 1,
            name,
            *decisions,
            *(pair.margins(self.model.rule).tolist() if self.has_gaps else ["", ""]),
            pair.gap if self.has_gaps else "",
            finding.runtime,
            replayed,
            " ".join(changed),
            " ".join(finding.alone),
            *(before[column] for column in self.names),
            *(after[column] for column in self.sensitive),
        ]

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


def record_digests(people: Matrix) -> list[str]:
    """Return a digest of each encoded row, so that two audits can compare the rows of one id."""
    # + 0.0 turns −0.0 into 0.0, which equals it.
    rows = np.asarray(people, "<f8") + 0.0
    return [hashlib.sha256(row.tobytes()).hexdigest()[:32] for row in rows]


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
