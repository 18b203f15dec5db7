"""Claims of a certificate: what an audit found about each person, in canonical JSON values.

Every number is exact. A program without FETA can re-prove a claim from the model's file alone.
"""

import secrets
from collections.abc import Iterator, Sequence
from itertools import repeat

import numpy as np

from feta.arrays import Matrix
from feta.auditing.block import AuditedBlock
from feta.auditing.finding import Finding
from feta.auditing.record import moving_attributes
from feta.io.canonical_json import Json, dyadic_text, exact_json, exact_text
from feta.model import Model
from feta.rule import Outcome
from feta.scorer.protocol import has_scores
from feta.space.attribute import Attribute, Categorical, Derived
from feta.verdict.certificate import BoundsProof, Certificate
from feta.verdict.counterexample import Counterexample

Claim = dict[str, Json]


class Claims:
    """The claims about the people of one model."""

    def __init__(self, model: Model) -> None:
        self.model = model
        attributes = model.space.attributes
        self._columns = [a for a in attributes if not isinstance(a, Derived)]
        self._moving = moving_attributes(model)
        self._proved = model.scorer.provenance != "counted"

    def of_block(self, audited: AuditedBlock) -> Iterator[Claim]:
        """Yield one claim per row of a block."""
        block = audited.block
        people = iter(self._cells(self._columns, block.people))
        pairs = iter(self._pairs([finding.pair for finding in audited.findings]))
        rows = zip(audited.findings, block.names, strict=True)
        for index, (finding, name) in enumerate(rows):
            claim: Claim = {
                "id": name,
                "row": finding.row + 1,
                "salt": secrets.token_hex(16),
                "verdict": finding.status,
            }
            if index in block.unread:
                yield claim | {"reason": finding.reason}
                continue
            claim["person"] = next(people)
            claim["decision"] = _outcome(finding.decision)
            claim["fair_decision"] = _outcome(finding.fair_decision)
            yield claim | self._evidence(finding, pairs)

    def _evidence(self, finding: Finding, pairs: Iterator[Claim]) -> Claim:
        if finding.pair is not None:
            return {"pair": next(pairs)}
        if finding.certificate is not None:
            return {"proof": self._proof(finding.certificate)}
        return {"reason": finding.reason}

    @staticmethod
    def _proof(certificate: Certificate) -> Claim:
        proof = certificate.proof
        if not isinstance(proof, BoundsProof):
            return {"counterparts": proof.counterparts}
        # Audits count counterparts, so their sensitive columns are finite, and cuts are indices.
        tree: list[Json] = [0 if cut is None else [cut[0], int(cut[1])] for cut in proof.cuts]
        if proof.center is None:
            return {"tree": tree}
        numerator, denominator = proof.center.as_integer_ratio()
        # The checker admits no other centers (`Band.at`): the denominator is a power of two.
        return {"center": dyadic_text(numerator, 1 - denominator.bit_length()), "tree": tree}

    def _pairs(self, found: Sequence[Counterexample | None]) -> list[Claim]:
        """Return the pairs of a block, all evaluated together."""
        pairs = [pair for pair in found if pair is not None]
        if not pairs:
            return []
        ends = np.stack([end for pair in pairs for end in (pair.person, pair.counterpart)])
        cells = self._cells(self._moving, ends)
        scores = self._exact_scores(ends) if self._proved else self._answers(pairs)
        return [
            {
                "people": [cells[2 * row], cells[2 * row + 1]],
                "scores": [scores[2 * row], scores[2 * row + 1]],
            }
            for row in range(len(pairs))
        ]

    def _exact_scores(self, people: Matrix) -> list[Json]:
        """Return the exact scores of people, times the model's denominator."""
        centers = self.model.exact_scores(people).centers
        return [
            [dyadic_text(number, centers.exponent) for number in row]
            for row in centers.numerators.tolist()
        ]

    def _answers(self, pairs: Sequence[Counterexample]) -> list[Json]:
        """Return the recorded scores of a counted model; None if it returns labels only."""
        if not has_scores(self.model.scorer):
            return [None] * (2 * len(pairs))
        return [exact_json(np.atleast_1d(end).tolist()) for pair in pairs for end in pair.scores]

    def _cells(self, attributes: Sequence[Attribute], people: Matrix) -> list[Json]:
        """Return one list of cells per person: the index of a category, or an exact number."""
        columns = [_cells(attribute, people[:, self.model.space.columns_of(attribute)])
                   for attribute in attributes]  # fmt: skip
        return [list(row) for row in zip(*columns, strict=True)]


def _cells(attribute: Attribute, codes: Matrix) -> Sequence[Json]:
    if isinstance(attribute, Categorical):
        indices: list[Json] = np.argmax(codes, axis=1).tolist()
        return indices
    absent = codes[:, 1] == 1.0 if codes.shape[1] > 1 else repeat(False)
    return [
        None if missing else exact_text(number)
        for number, missing in zip(codes[:, 0].tolist(), absent, strict=False)
    ]


def _outcome(outcome: Outcome | None) -> Json:
    """Return a decision as an integer, a score as an exact text, and None if there is neither."""
    if outcome is None:
        return None
    return exact_text(outcome) if isinstance(outcome, float) else int(outcome)
