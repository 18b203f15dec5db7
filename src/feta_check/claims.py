"""Claims: each one is proved again, refuted, or left unchecked."""

import time
from collections.abc import Iterable, Iterator
from fractions import Fraction
from math import prod
from typing import Any

from feta_check.forest import Forest
from feta_check.model_file import ModelFile
from feta_check.network import Network
from feta_check.people import Space
from feta_check.reading import (
    Refuted,
    Unchecked,
    Unreadable,
    canonical,
    digest,
    exact,
    nearest,
)
from feta_check.rules import Rule, Scaled
from feta_check.segments import Box, Restricted, Scorer, Segment
from feta_check.votes import Votes

MAX_COUNTERPARTS, MAX_NODES = 2**20, 100_000
RELATION = "all sensitive values"
COMMON = {"id", "row", "salt", "verdict"}
EVIDENCE = {"fair": "proof", "unfair": "pair", "undecided": "reason"}


class Model:
    """What a .feta file says: columns, scorer, rule and votes."""

    def __init__(self, file: ModelFile) -> None:
        description = file.description
        if "relation" in description:
            raise Unchecked("not checkable by this program: another relation")
        self.space = Space(description.get("space"))
        self.rule = Rule(description.get("rule"))
        kind: Any = (
            Forest if "forest" in description else Network if "network" in description else None
        )
        if kind is None:
            raise Unchecked("not checkable by this program: this kind of model")
        try:
            self.scorer: Scorer = kind(file, self.space, [self.rule.level])
            self.votes = Votes(file, self.rule, self.space.size)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise Unreadable(f"the model is damaged: {type(error).__name__}: {error}") from None
        if self.scorer.outputs != self.rule.outputs or not self.space.axes:
            raise Unreadable("the model has another number of scores than its rule")

    @staticmethod
    def schema(file: ModelFile) -> bytes:
        """Return the schema that the certificate of a model must have."""
        names = {"columns": "space", "outcomes": "outcomes", "rule": "rule"}
        parts = {name: file.description.get(key) for name, key in names.items()}
        return canonical({**parts, "relation": RELATION})


def check_header(header: dict[str, Any], schema: bytes, file: ModelFile) -> None:
    """Raise unless model and schema are those of the certificate."""
    if header["relation"] != RELATION:
        raise Unchecked("not checkable by this program: another relation")
    if digest(file.content) != header["model_sha256"]:
        raise Unreadable("the model is not the one of the certificate")
    if Model.schema(file) != schema:
        raise Unreadable("schema.json is not the schema of the model")
    if digest(canonical(file.description.get("rule"))) != header["rule_sha256"]:
        raise Unreadable("the rule is not the one of the certificate")


class ClaimChecker:
    """Checks the claims about the people of one model."""

    def __init__(self, model: Model, seconds: float = float("inf")) -> None:
        self.model, self.seconds = model, seconds
        self.deadline = float("inf")

    def check(self, claim: dict[str, Any]) -> str:
        """Return what was proved; raise `Refuted` or `Unchecked`."""
        self.deadline = time.monotonic() + self.seconds
        try:
            return self._check(claim)
        except (TypeError, ValueError, LookupError, AttributeError) as error:
            raise Refuted(f"the claim is malformed: {error}") from None

    def _check(self, claim: dict[str, Any]) -> str:
        _check_fields(claim)
        if claim["verdict"] == "not audited":
            return "no claim"
        space = self.model.space
        row = space.row(claim["person"])
        restricted = self.model.scorer.restrict(row)
        rule = self.model.rule.scaled(restricted.unit)
        own = [
            axis.value(cell)
            for axis, cell in zip(space.axes, _sensitive_cells(space, claim["person"]), strict=True)
        ]
        decision = self._check_decision(claim["decision"], restricted, rule, own)
        if claim["verdict"] == "unfair":
            self._check_pair(claim["pair"], restricted, rule, own)
        if claim["verdict"] == "fair":
            self._check_proof(claim["proof"], restricted, rule, decision)
        self._check_fair_decision(claim, restricted, rule, decision)
        return {"fair": "fair", "unfair": "unfair"}.get(claim["verdict"], "no verdict claimed")

    def _check_decision(
        self, stated: Any, restricted: Restricted, rule: Scaled, own: list[int]
    ) -> int:
        scores = restricted.scores(own)
        if self.model.rule.regression:
            true: int | Fraction = nearest(scores[0] * restricted.unit)
            _expect("decision", stated, true)
            return 0
        decision = rule.decide(scores)
        _expect("decision", stated, decision)
        return decision

    def _check_pair(self, pair: Any, restricted: Restricted, rule: Scaled, own: list[int]) -> None:
        if type(pair) is not dict or pair.keys() != {"people", "scores"}:
            raise Refuted("the pair has unknown or missing fields")
        if any(type(ends) is not list or len(ends) != 2 for ends in pair.values()):
            raise Refuted("the pair does not have two people with scores")
        ends = [self.model.space.values(cells) for cells in pair["people"]]
        scores = [restricted.scores(values) for values in ends]
        unit = restricted.unit * restricted.denominator
        for stated, true in zip(pair["scores"], scores, strict=True):
            if type(stated) is not list or [exact(text) / unit for text in stated] != true:
                raise Refuted("a person of the pair has other scores")
        if self.model.rule.regression:
            difference = scores[0][0] - scores[1][0]
            if max(difference, -difference) <= rule.level:
                raise Refuted("the scores of the pair are within the tolerance")
        elif ends[0] != own:
            raise Refuted("the pair does not begin with the person")
        elif rule.decide(scores[0]) == rule.decide(scores[1]):
            raise Refuted("the pair gets the same decision")

    def _check_proof(self, proof: Any, restricted: Restricted, rule: Scaled, decision: int) -> None:
        space = self.model.space
        whole = [axis.whole for axis in space.axes]
        keys = proof.keys() if type(proof) is dict else set()
        if keys == {"counterparts"}:
            stated = proof["counterparts"]
            if type(stated) is not int or stated != space.size:
                raise Refuted("the proof is about another number of counterparts")
            self._check_all(self._segments(restricted, whole), rule, decision)
            return
        regression = self.model.rule.regression
        if keys != ({"center", "tree"} if regression else {"tree"}):
            raise Refuted("the proof has unknown or missing fields")
        center = exact(proof["center"]) if regression else None
        for box in _leaves(proof["tree"], whole):
            self._check_leaf(box, restricted, rule, decision, center)

    def _check_leaf(
        self, box: Box, restricted: Restricted, rule: Scaled, decision: int, center: Fraction | None
    ) -> None:
        if _count(box) <= MAX_COUNTERPARTS:
            segments = self._segments(restricted, box)
            if center is None:
                return self._check_all(segments, rule, decision)
            middle, half = center / restricted.unit, Fraction(rule.level) / 2
            for segment in segments:
                if any(abs(scores[0] - middle) > half for scores in segment.ends):
                    raise Refuted("a score is outside the band around the center")
            return None
        if not rule.is_bounded(lambda row: restricted.minimum(box, row), decision, center):
            raise Unchecked("bounds leave a leaf of the tree undecided")
        return None

    def _check_all(self, segments: Iterable[Segment], rule: Scaled, decision: int) -> None:
        if not self.model.rule.regression:
            for segment in segments:
                rule.check(segment, decision)
            return
        ends = [scores[0] for segment in segments for scores in segment.ends]
        if max(ends) - min(ends) > rule.level:
            raise Refuted("two counterparts have scores farther apart than the tolerance")

    def _check_fair_decision(
        self, claim: dict[str, Any], restricted: Restricted, rule: Scaled, decision: int
    ) -> None:
        stated, votes = claim["fair_decision"], self.model.votes
        if stated is None:
            return
        if claim["verdict"] == "fair" and votes.vote == "majority" and not rule.rule.regression:
            _expect("fair decision", stated, decision)  # all votes are for it
            return
        whole = [axis.whole for axis in self.model.space.axes]
        true = votes.decide(self._segments(restricted, whole), rule)
        _expect("fair decision", stated, nearest(true) if isinstance(true, Fraction) else true)

    def _segments(self, restricted: Restricted, box: Box) -> Iterator[Segment]:
        """Yield segments until the time is up."""
        if _count(box) > MAX_COUNTERPARTS:
            raise Unchecked(f"more than {MAX_COUNTERPARTS} counterparts")
        for segment in restricted.segments(box):
            if time.monotonic() > self.deadline:
                raise Unchecked("out of time")
            yield segment


def _check_fields(claim: dict[str, Any]) -> None:
    verdict = claim["verdict"]
    expected = COMMON | {"reason"}
    if verdict != "not audited":
        expected = COMMON | {"person", "decision", "fair_decision", EVIDENCE[verdict]}
    if claim.keys() != expected:
        raise Refuted("the claim has unknown or missing fields")
    if not all(type(claim[name]) is str for name in ("id", "salt")) or len(claim["salt"]) != 32:
        raise Refuted("the claim has an invalid id or salt")


def _expect(what: str, stated: Any, true: int | Fraction) -> None:
    """Compare a decision, or a score as an exact text; null claims nothing."""
    if stated is None:
        return
    got = exact(stated) if isinstance(true, Fraction) else stated
    if type(got) is not type(true) or got != true:
        raise Refuted(f"the {what} is another one")


def _sensitive_cells(space: Space, cells: list[Any]) -> list[Any]:
    return [cell for column, cell in zip(space.raw, cells, strict=True) if column.sensitive]


def _leaves(tree: Any, whole: Box) -> list[Box]:
    """Apply the cuts of a tree; the leaves together contain every counterpart."""
    if type(tree) is not list or not 0 < len(tree) <= MAX_NODES:
        raise Refuted("the proof has no tree, or a tree that is too large")
    stack, leaves = [whole], []
    for node in tree:
        if not stack:
            raise Refuted("the tree has nodes after its end")
        box = stack.pop()
        if node == 0 and type(node) is int:
            leaves.append(box)
            continue
        if type(node) is not list or len(node) != 2 or type(node[0]) is not int:
            raise Refuted("the tree has an invalid node")
        axis = node[0]
        if not 0 <= axis < len(box):
            raise Refuted("the tree cuts a column that is not sensitive")
        stack += _halves(box, axis, node[1])
    if stack:
        raise Refuted("the tree leaves counterparts without a proof")
    return leaves


def _halves(box: Box, axis: int, at: Any) -> list[Box]:
    """Return the second half of a box, then the first."""
    low, high = box[axis]
    if type(at) is not int or not low <= at < high:
        raise Refuted("the tree cuts outside a box")
    return [[*box[:axis], ends, *box[axis + 1 :]] for ends in ((at + 1, high), (low, at))]


def _count(box: Box) -> int:
    return prod(high - low + 1 for low, high in box)
