"""The audit of a table: a stream of blocks, its results so far, and the journal at its end."""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Self

from feta.auditing.auditor import Auditor
from feta.auditing.block import AuditedBlock, Block
from feta.auditing.report_data import ReportData, ReportSource, report_data
from feta.auditing.results import AuditResults
from feta.auditing.stream import AuditStream
from feta.errors import ModelFailure
from feta.io.bad_rows import BadRows

Write = Callable[[AuditedBlock], None]
Guard = Callable[[], AbstractContextManager[None]]


def write_nothing(audited: AuditedBlock) -> None:
    """Ignore a block."""
    del audited


@dataclass
class TableAudit:
    """An audit that can be reported at any time; until it is finished, it is partial.

    At the end of the context, workers are stopped. The journal is deleted if everybody has an
    answer, or if it is empty; otherwise a later audit resumes with it.
    """

    auditor: Auditor
    stream: AuditStream
    results: AuditResults = field(init=False)
    bad_rows: BadRows = field(init=False)
    finished: bool = False  # whether all blocks are audited
    reported: bool = False  # whether the results are complete and stored elsewhere

    def __post_init__(self) -> None:
        self.results = AuditResults.of(self.auditor.model)
        self.bad_rows = BadRows(self.auditor.model.space, open_limits=True)

    def run(
        self,
        blocks: Iterable[Block],
        *,
        write: Write = write_nothing,
        guard: Guard = nullcontext,
        advance: Callable[[float], None] | None = None,
        before: int = 0,
    ) -> None:
        """Audit all blocks; `before` rows of the table are in files before these.

        A block is counted and written inside `guard`, which may defer an interruption: both are
        done, or neither. `advance` takes the share of the table that is done.
        """
        for audited in self.stream.blocks(blocks):
            with guard():
                self.results.add(audited)
                for unread in audited.block.unread.values():
                    if unread.cells is not None:
                        self.bad_rows.add(unread.cells, unread.error, before=before)
                write(audited)
            if advance is not None:
                advance(audited.block.progress)
        self.finished = not self.stream.stopped

    def report(
        self, source: ReportSource, *, seconds: float | None = None, picture: bool = True
    ) -> ReportData:
        """Return what a report about the results so far shows.

        A counted model may fail even here; the report then shows what does not need it.
        """
        try:
            return self._report(source, seconds, picture=picture and not self.stream.stopped)
        except ModelFailure as error:
            self.stream.stopped, self.finished = str(error), False
            return self._report(source, seconds, picture=False)

    def _report(self, source: ReportSource, seconds: float | None, *, picture: bool) -> ReportData:
        return report_data(
            self.auditor,
            self.results,
            source,
            partial=not self.finished,
            picture=picture,
            seconds=seconds,
            bad_rows=self.bad_rows.kinds,
            stopped=self.stream.stopped,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stream.executor.stop()
        journal = self.stream.journal
        if journal is None:
            return
        complete = self.finished and self.reported and not self.stream.lost
        journal.remove() if complete or journal.empty else journal.close()
