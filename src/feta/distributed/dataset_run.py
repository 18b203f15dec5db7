"""A run over the parts of a dataset: survey, work where results are missing, receipts in order."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256

from feta.distributed.cluster import Cluster, ClusterError, WorkersDied
from feta.distributed.dataset import Part, PartFacts
from feta.distributed.part_work import PartFailure, PartWork, Survey, run_part, survey
from feta.distributed.result_folder import PARTS, Receipt, ResultFolder
from feta.errors import DomainError, ModelFailure
from feta.progress import Advance

# Parts that may fail before the others are not started any more.
MAX_FAILED = 5


@dataclass
class DatasetRun:
    """The parts of a dataset and what is done so far; finished parts are never lost."""

    cluster: Cluster
    parts: Sequence[Part]
    surveyed: list[PartFacts] = field(default_factory=list)
    empty: int = 0  # parts that have no rows
    kept: int = 0  # parts that had results before
    done: int = 0

    @property
    def rows(self) -> int:
        """The number of rows of all parts."""
        return sum(facts.rows for facts in self.surveyed)

    @property
    def sha256(self) -> str:
        """The digest of the list of all parts with their digests, as `sha256sum` prints them."""
        lines = [f"{facts.sha256}  {facts.part.name}\n" for facts in self.surveyed]
        return sha256("".join(lines).encode()).hexdigest()

    def survey(self, how: Survey, advance: Advance) -> None:
        """Read all parts once; number their rows, and leave out parts without rows."""
        found: dict[int, PartFacts] = {}
        failures: dict[int, PartFailure] = {}
        for index, result in self.cluster.each(survey, self.cluster.share(how), self.parts):
            if isinstance(result, PartFacts):
                found[index] = result
            else:
                failures[index] = _failure(self.parts[index], result)
            advance((len(found) + len(failures)) / len(self.parts))
        if failures:
            raise _error([failures[index] for index in sorted(failures)])
        full = [found[index] for index in sorted(found) if found[index].rows]
        if not full:
            raise DomainError(f"{self.parts[0].path}: no rows: got none in any part; expected some")
        self.empty = len(self.parts) - len(full)
        self.parts = [facts.part for facts in full]
        self.surveyed = list(_numbered(full))

    def work(self, work: PartWork, results: ResultFolder, advance: Advance) -> None:
        """Do the work on all parts that have no results; the others are kept."""
        results.open()
        failures: dict[int, PartFailure] = {}
        rows, shared = 0, self.cluster.share(work)
        try:
            for index, result in self.cluster.each(run_part, shared, self.surveyed):
                facts = self.surveyed[index]
                rows += facts.rows
                if isinstance(result, PartFailure | WorkersDied):
                    failures[index] = _failure(facts.part, result)
                    if len(failures) >= MAX_FAILED:
                        break
                    continue
                self.kept += result == "kept"
                self.done += result == "done"
                advance(rows / self.rows)
        except ClusterError as lost:
            raise ClusterError(f"{lost}; {self.progress(results)}") from None
        if failures:
            error = _error([failures[index] for index in sorted(failures)])
            error.add_note(self.progress(results))
            raise error

    def progress(self, results: ResultFolder) -> str:
        """Return what is finished, and how to resume."""
        finished, where = self.kept + self.done, results.folder / PARTS
        return (
            f"{finished:,} of {len(self.parts):,} parts are finished and kept in {where}; run the "
            "same command again to resume"
        )

    def receipts(self, results: ResultFolder) -> Iterator[tuple[PartFacts, Receipt]]:
        """Yield the receipts of all parts in order.

        Their files are checked again: a worker that was presumed dead may have written since.
        """
        for facts in self.surveyed:
            receipt = results.receipt(facts)
            if receipt is None:
                raise DomainError(
                    f"{results.path(facts, 'receipt.json')}: the results of {facts.part.name} are "
                    "gone or changed: got no receipt with their digests; expected the one that a "
                    "worker wrote; let the workers write to the same folder as this process, and "
                    "run the command again"
                )
            yield facts, receipt


def _numbered(surveyed: Sequence[PartFacts]) -> Iterator[PartFacts]:
    """Set the number of rows in the files before each part; groups of a file count its rows."""
    before = 0
    for facts in surveyed:
        yield replace(facts, before=before)
        before += facts.rows if facts.part.groups is None else 0


def _failure(part: Part, result: PartFailure | WorkersDied) -> PartFailure:
    """Return a failure that names the part."""
    if isinstance(result, WorkersDied):
        return PartFailure(f"{part.path}: {result}, or write smaller parts")
    named = part.name in result.message or str(part.path) in result.message
    return result if named else replace(result, message=f"{part.path}: {result.message}")


def _error(failures: Sequence[PartFailure]) -> DomainError | ModelFailure:
    """Return the error about the first failure, with the others as notes."""
    first, *others = failures
    error = ModelFailure(first.message) if first.of_model else DomainError(first.message)
    for note in first.notes:
        error.add_note(note)
    if others:
        error.add_note(f"{len(others):,} more parts failed:")
        for failure in others[:MAX_FAILED]:
            error.add_note(f"- {failure.message}")
    return error
