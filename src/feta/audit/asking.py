"""Asking: people in, findings out; from the journal if they are known, else from whoever computes."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from feta.arrays import Matrix
from feta.audit.auditor import Auditor
from feta.audit.confirm import confirmed, places_to_confirm
from feta.audit.finding import Finding
from feta.audit.journal import Journal
from feta.audit.patience import patiently
from feta.audit.workers import DIED, Workers

# A block of people is asked in about this time: so much is lost when the process is killed.
BLOCK_SECONDS = 0.5
FIRST_BLOCK = 16
MOST_PEOPLE = 256


@dataclass
class Asking:
    """An auditor, or workers if there are some, and perhaps a journal of what is done."""

    auditor: Auditor
    workers: Workers | None = None
    journal: Journal | None = None
    size: int = FIRST_BLOCK  # of the next block; so many people take about half a second
    lost: int = 0  # people without an answer because their worker died

    @property
    def at_once(self) -> int:
        """How many people to hand over at a time."""
        return MOST_PEOPLE * (1 if self.workers is None else self.workers.jobs)

    def ask(self, people: Matrix) -> list[Finding]:
        """Ask about everybody who is not known yet; rows are numbered from 0."""
        found = self._known(people)
        rows = np.flatnonzero([one is None for one in found])
        for start, findings in self._computed(people[rows]):
            places = rows[start : start + len(findings)]
            self._store(people[places], findings)
            for place, finding in zip(places.tolist(), findings, strict=True):
                found[place] = replace(finding, row=place)
        return [one for one in found if one is not None]

    def _known(self, people: Matrix) -> list[Finding | None]:
        """Look people up in the journal; what an earlier session called fair is proved again."""
        if self.journal is None:
            return [None] * len(people)
        known = self.journal.known_since(people)
        found = [finding for finding, _ in known]
        places = places_to_confirm(known)
        if len(places):
            fair = [one for place in places.tolist() if (one := found[place]) is not None]
            auditor = self.auditor
            again = patiently(confirmed, auditor.model, people[places], fair, auditor.budget)
            for place, finding in zip(places.tolist(), again, strict=True):
                found[place] = finding
            kept = [place for place in places.tolist() if found[place] is not None]
            self._store(people[kept], [one for place in kept if (one := found[place]) is not None])
        return found

    def _store(self, people: Matrix, findings: list[Finding]) -> None:
        """Store answers; the death of a worker is not one, so that a resumed run asks again."""
        answered = [place for place, one in enumerate(findings) if one.reason != DIED]
        self.lost += len(findings) - len(answered)
        if self.journal is not None and answered:
            self.journal.write(people[answered], [findings[place] for place in answered])

    def _computed(self, people: Matrix) -> Iterator[tuple[int, list[Finding]]]:
        if self.workers is not None:
            yield from self.workers.ask(people)
            return
        start = 0
        while start < len(people):
            block = people[start : start + self.size]
            began = time.perf_counter()
            yield start, patiently(self.auditor.ask, block)
            start += len(block)
            seconds = max(time.perf_counter() - began, 1e-9)
            fitting = int(BLOCK_SECONDS * len(block) / seconds)
            self.size = max(1, min(MOST_PEOPLE, 2 * self.size, fitting))
