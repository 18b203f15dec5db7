"""The work on one part, in a worker: read in batches, written aside, renamed."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Literal, TypeVar

from feta.auditing.auditor import Auditor
from feta.auditing.block import AuditedBlock
from feta.auditing.executor import InProcess
from feta.auditing.part_claims import CLAIMS, PartClaims
from feta.auditing.stored_results import stored_bad_rows, stored_results
from feta.auditing.stream import AuditStream
from feta.auditing.table_audit import TableAudit
from feta.auditing.table_blocks import RowColumns, TableBlocks
from feta.auditing.table_decisions import TableDecisions
from feta.distributed.dataset import Part, PartFacts, survey_part
from feta.distributed.part_model import WORKING, SameModel
from feta.distributed.result_folder import Json, PartWriter, ResultFolder
from feta.engine.protocol import Budget
from feta.errors import CertificateError, DomainError, FetaError, ModelFailure
from feta.io.sanitize import write_row
from feta.io.table_options import TableOptions
from feta.predict.fair_predictor import FairPredictor
from feta.readers.comparison import Comparison
from feta.report.audit_tables import AuditTables
from feta.report.decision_table import DecisionTable
from feta.vote.stored_votes import StoredVotes

Result = TypeVar("Result")

DECISIONS = {False: "csv", True: "jsonl"}


@dataclass(frozen=True)
class Survey:
    """What a survey reads: the columns, and how."""

    names: frozenset[str]
    options: TableOptions


@dataclass(frozen=True)
class RowOptions:
    """How rows are read and answered."""

    label: str | None
    id_column: str | None
    skip_bad_rows: bool
    engine: str
    seconds: float | None
    as_json: bool = False
    certify: bool = False


@dataclass(frozen=True, slots=True)
class PartFailure:
    """Why a part has no results; a value, because not every exception can be sent."""

    message: str
    notes: tuple[str, ...] = ()
    of_model: bool = False  # whether the model's answers cannot be used


PartOutcome = Literal["kept", "done"] | PartFailure


@dataclass(frozen=True)
class PartWork:
    """What every worker does with a part of the dataset."""

    model: SameModel
    results: ResultFolder
    options: RowOptions
    votes: StoredVotes
    names: frozenset[str]  # the columns that are read
    audits: bool  # or makes fair decisions

    def run(self, facts: PartFacts) -> PartOutcome:
        """Do the work on a part, unless it has results."""
        return _outcome(lambda: self._run(facts))

    def _run(self, facts: PartFacts) -> PartOutcome:
        if self.results.receipt(facts) is not None:
            return "kept"
        self._audit(facts) if self.audits else self._decide(facts)
        return "done"

    def auditor(self) -> Auditor:
        """Return the auditor of this process."""
        loaded, options = self.model.loaded, self.options
        counted = loaded.model.scorer.provenance == "counted"
        runtime = None if counted else loaded.runtime  # a counted pair is its own answer
        votes = None if self.votes.is_default else self.votes
        budget = Budget(seconds=options.seconds)
        return Auditor(loaded.model, options.engine, budget, runtime, votes=votes)

    def _audit(self, facts: PartFacts) -> None:
        compared = self.model.compare(facts)
        loaded, auditor = self.model.part(facts), self.auditor()
        assert loaded.table is not None
        executor = InProcess(auditor, interruptible=False)
        audit = TableAudit(auditor, AuditStream(executor))
        tables = AuditTables(auditor.model)
        options = self.options
        columns = RowColumns(options.label, options.id_column, options.skip_bad_rows)
        blocks = TableBlocks(auditor, columns, executor.block_size, facts.before)
        chunks = loaded.table.chunks(self.names, typed=loaded.formats)
        rows = 0
        claims = PartClaims(auditor.model) if options.certify else None
        kinds = [*tables.headers, *([CLAIMS] if claims else [])]
        with self.results.writing(facts, kinds) as writer:
            for name, header in tables.headers.items():
                write_row(writer.streams[name], header)

            def write(audited: AuditedBlock) -> None:
                nonlocal rows
                rows += len(audited.block)
                tables.write(audited, writer.streams)
                if claims is not None:
                    claims.write(audited, writer.streams[CLAIMS])

            audit.run(blocks.blocks(chunks), write=write, before=facts.before)
            if audit.stream.stopped:
                raise ModelFailure(audit.stream.stopped)
            content = {
                "results": stored_results(audit.results),
                "bad_rows": stored_bad_rows(audit.bad_rows),
                "compared": _comparison(compared),
            }
            self._finish(facts, writer, rows, content)

    def _decide(self, facts: PartFacts) -> None:
        compared = self.model.compare(facts)
        loaded, options = self.model.part(facts), self.options
        assert loaded.table is not None
        predictor = FairPredictor.voting(loaded.model, self.votes, options.engine)
        decisions = TableDecisions(
            predictor, options.id_column, options.skip_bad_rows, options.seconds, facts.before
        )
        key = "decision" if loaded.model.rule.tolerance is None else "score"
        kind, rows = DECISIONS[options.as_json], 0
        with self.results.writing(facts, [kind]) as writer:
            table = DecisionTable(
                writer.streams[kind], key, id_column=options.id_column, as_json=options.as_json
            )
            for chunk in loaded.table.chunks(self.names, typed=loaded.formats):
                table.write(chunk, decisions.of_chunk(chunk), before=facts.before)
                rows += len(chunk)
            remarks = decisions.remarks
            content = {
                "counts": dict(table.counts),
                "incomplete": decisions.incomplete,
                "bad_rows": stored_bad_rows(remarks.bad_rows),
                "first_problems": remarks.first_problems,
                "outside": [[list(limit), count] for limit, count in _limits(decisions)],
                "unlisted": dict(remarks.unlisted),
                "compared": _comparison(compared),
            }
            self._finish(facts, writer, rows, content)

    def _finish(self, facts: PartFacts, writer: PartWriter, rows: int, content: Json) -> None:
        """Complete the results, unless the part is another one than was surveyed."""
        if rows != facts.rows or facts.part.sha256() != facts.sha256:
            raise DomainError(
                f"{facts.part.path}: the file has changed during the run: got {rows:,} rows; "
                f"expected the {facts.rows:,} rows with which it began; run the command again"
            )
        writer.finish(rows, content)


def _limits(decisions: TableDecisions) -> list[tuple[tuple[str, str, float], int]]:
    counts = decisions.remarks.outside.items()
    return [((limit.column, limit.side, limit.limit), count) for limit, count in counts]


def _comparison(compared: Comparison | None) -> Json | None:
    return None if compared is None else asdict(compared)


def run_part(work: PartWork, facts: PartFacts) -> PartOutcome:
    """Do the work on one part."""
    return work.run(facts)


def survey(how: Survey, part: Part) -> PartFacts | PartFailure:
    """Read a part once, before its rows are used."""
    return _outcome(lambda: survey_part(part, how.names, how.options))


def _outcome(work: Callable[[], Result]) -> Result | PartFailure:
    """Do the work; return why it failed. Proofs that do not hold are not caught."""
    with WORKING:
        try:
            return work()
        except CertificateError:
            raise
        except ModelFailure as error:
            return PartFailure(str(error), of_model=True)
        except (FetaError, OSError, MemoryError) as error:
            return PartFailure(_words(error), tuple(getattr(error, "__notes__", ())))


def _words(error: Exception) -> str:
    if isinstance(error, OSError) and not isinstance(error, FetaError):
        return f"{error.filename or 'a file'}: {error.strerror or error}"
    return str(error) or type(error).__name__
