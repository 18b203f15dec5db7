"""Asking: people in, findings out; from the journal if they are known, else from whoever computes."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from feta.arrays import Matrix
from feta.auditing.auditor import Auditor
from feta.auditing.confirm import confirmed, places_to_confirm
from feta.auditing.finding import Finding
from feta.auditing.interruptible import run_interruptibly
from feta.auditing.journal import AuditJournal
from feta.auditing.workers import DIED, Workers

# A block of people is asked in about this time: so much is lost when the process is killed.
BLOCK_SECONDS = 0.5
FIRST_BLOCK = 16
MAX_PEOPLE = 256


@dataclass
class AuditRunner:
    """An auditor, or workers if there are some, and perhaps a journal of what is done."""

    auditor: Auditor
    workers: Workers | None = None
    journal: AuditJournal | None = None
    size: int = FIRST_BLOCK  # of the next block; so many people take about half a second
    lost: int = 0  # people without an answer because their worker died

    @property
    def at_once(self) -> int:
        """How many people to hand over at a time."""
        return MAX_PEOPLE * (1 if self.workers is None else self.workers.jobs)

    def ask(self, people: Matrix) -> list[Finding]:
        """Ask about everybody who is not known yet; rows are numbered from 0."""
        found = self._known(people)
        rows = np.flatnonzero([one is None for one in found])
        for start, findings in self._computed(people[rows]):
            indices = rows[start : start + len(findings)]
            self._store(people[indices], findings)
            for index, finding in zip(indices.tolist(), findings, strict=True):
                found[index] = replace(finding, row=index)
        return [one for one in found if one is not None]

    def _known(self, people: Matrix) -> list[Finding | None]:
        """Look people up in the journal; what an earlier session called fair is proved again."""
        if self.journal is None:
            return [None] * len(people)
        known = self.journal.known_since(people)
        found = [finding for finding, _ in known]
        indices = places_to_confirm(known)
        if len(indices):
            fair = [one for index in indices.tolist() if (one := found[index]) is not None]
            auditor = self.auditor
            again = run_interruptibly(
                confirmed, auditor.model, people[indices], fair, auditor.budget
            )
            for index, finding in zip(indices.tolist(), again, strict=True):
                found[index] = finding
            kept = [index for index in indices.tolist() if found[index] is not None]
            self._store(people[kept], [one for index in kept if (one := found[index]) is not None])
        return found

    def _store(self, people: Matrix, findings: list[Finding]) -> None:
        """Store answers; the death of a worker is not one, so that a resumed run asks again."""
        answered = [index for index, one in enumerate(findings) if one.reason != DIED]
        self.lost += len(findings) - len(answered)
        if self.journal is not None and answered:
            self.journal.write(people[answered], [findings[index] for index in answered])

    def _computed(self, people: Matrix) -> Iterator[tuple[int, list[Finding]]]:
        if self.workers is not None:
            yield from self.workers.ask(people)
            return
        start = 0
        while start < len(people):
            block = people[start : start + self.size]
            began = time.perf_counter()
            yield start, run_interruptibly(self.auditor.ask, block)
            start += len(block)
            seconds = max(time.perf_counter() - began, 1e-9)
            fitting = int(BLOCK_SECONDS * len(block) / seconds)
            self.size = max(1, min(MAX_PEOPLE, 2 * self.size, fitting))
