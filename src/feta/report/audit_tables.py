"""The tables of an audit: verdicts.csv and pairs.csv, described in docs/reference/formats.md."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import IO

import numpy as np

from feta.arrays import Matrix
from feta.auditing.block import AuditedBlock
from feta.auditing.finding import Finding
from feta.auditing.record import moving_attributes, record_columns
from feta.io.sanitize import write_rows
from feta.model import Model
from feta.scorer.protocol import has_scores
from feta.verdict.counterexample import Counterexample

PAIRS, VERDICTS = "pairs.csv", "verdicts.csv"

# A person with a counterexample, and the person's id in the table.
PairRow = tuple[Finding, Counterexample, str]

REPLAYED = {None: "", True: "yes", False: "no"}

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


class AuditTables:
    """The rows of both tables for one model."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.names = [attribute.name for attribute in model.space.attributes]
        self.moving = moving_attributes(model)
        self.moved = [attribute.name for attribute in self.moving]
        self.has_gaps = has_scores(model.scorer)  # False: the model returns labels only

    @property
    def headers(self) -> dict[str, list[str]]:
        """The header of each table."""
        return {PAIRS: self.pair_header(), VERDICTS: VERDICT_HEADER}

    def pair_header(self) -> list[str]:
        """Return the header of pairs.csv.

        A regression has the lower and the higher score; the row itself may have neither.
        """
        if self.model.rule.tolerance is None:
            return [*PAIR_HEADER, *self.names, *(f"counterpart {name}" for name in self.moved)]
        renamed = {"score": "lower score", "counterpart score": "higher score"}
        names = [
            f"{name} of the lower score" if name in self.moved else name for name in self.names
        ]
        others = [f"{name} of the higher score" for name in self.moved]
        return [*(renamed.get(name, name) for name in PAIR_HEADER), *names, *others]

    def write(self, audited: AuditedBlock, streams: Mapping[str, IO[str]]) -> None:
        """Write the rows of one block to the stream of each table."""
        block, describe = audited.block, self.model.describe
        digests = iter(record_digests(block.people))
        verdicts: list[list[object]] = []
        pairs: list[PairRow] = []
        for index, (finding, name) in enumerate(zip(audited.findings, block.names, strict=True)):
            pair, read = finding.pair, index not in block.unread
            verdicts.append(
                [
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
            )
            if pair is not None:
                pairs.append((finding, pair, name))
        write_rows(streams[VERDICTS], verdicts)
        write_rows(streams[PAIRS], self._pair_rows(pairs))

    def _pair_rows(self, pairs: Sequence[PairRow]) -> list[list[object]]:
        """Return the rows of pairs, whose records are decoded together."""
        if not pairs:
            return []
        space = self.model.space
        before = record_columns(space, np.stack([pair.person for _, pair, _ in pairs]))
        others = np.stack([pair.counterpart for _, pair, _ in pairs])
        after = record_columns(space, others, self.moving)
        rows: list[list[object]] = []
        records = zip(*(before[column] for column in self.names), strict=True)
        moved = zip(*after.values(), strict=True)
        own = zip(*(before[column] for column in self.moved), strict=True)
        for (finding, pair, name), record, values, old in zip(
            pairs, records, moved, own, strict=True
        ):
            columns = zip(self.moved, values, old, strict=True)
            changed = [column for column, new, previous in columns if new != previous]
            # A regression makes no decisions.
            decisions = [self.model.outcomes[number] for number in pair.decisions] or ["", ""]
            rows.append(
                [
                    finding.row + 1,
                    name,
                    *decisions,
                    *(pair.margins(self.model.rule).tolist() if self.has_gaps else ["", ""]),
                    pair.gap if self.has_gaps else "",
                    finding.runtime,
                    REPLAYED[finding.replayed],
                    " ".join(changed),
                    " ".join(finding.alone),
                    *record,
                    *values,
                ]
            )
        return rows


def record_digests(people: Matrix) -> list[str]:
    """Return a digest of each encoded row, so that two audits can compare the rows of one id."""
    # + 0.0 turns −0.0 into 0.0, which equals it.
    rows = np.asarray(people, "<f8") + 0.0
    return [hashlib.sha256(row.tobytes()).hexdigest()[:32] for row in rows]
