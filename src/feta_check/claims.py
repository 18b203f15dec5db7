"""Claims: each one is proved again, refuted, or left unchecked."""

import time
from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from itertools import chain
from math import prod
from typing import Any

from feta_check.forest import Forest
from feta_check.model_file import ModelFile
from feta_check.network import Network
from feta_check.people import Column, Space
from feta_check.reading import (
    Number,
    Refuted,
    Unchecked,
    Unreadable,
    canonical,
    digest,
    exact,
    expect,
    nearest,
)
from feta_check.rules import Rule
from feta_check.segments import Box, Segment
from feta_check.votes import Votes

UNKNOWN = "not checkable by this program: "
MAX_COUNTERPARTS, MAX_NODES = 2**20, 100_000
RELATION = "all sensitive values"
COMMON = {"id", "row", "salt", "verdict"}
EVIDENCE = {"fair": "proof", "unfair": "pair", "undecided": "reason"}
SCORERS: dict[str, Any] = {"forest": Forest, "network": Network}
FACTS = {"fingerprints", "outcomes", "rule", "space", "table", "version", "votes"}
DAMAGE = ArithmeticError, AttributeError, LookupError, Refuted, TypeError, ValueError


class Model:
    """What a .feta file says: columns, scorer, rule and votes."""

    def __init__(self, file: ModelFile) -> None:
        facts = file.description
        version = facts.get("version")
        expect(version in (1, 2), f"got version {version!r} of a .feta file; expected 1 or 2")
        kinds = facts.keys() - FACTS
        expect(len(kinds) == 1 and kinds <= SCORERS.keys(), f"{UNKNOWN}this model", Unchecked)
        try:
            self.space, self.rule = Space(facts["space"]), Rule.read(facts["rule"])
            self.scorer = SCORERS[kinds.pop()](file, self.space, self.rule.level)
            self.votes = Votes(file, self.rule, self.space)
        except DAMAGE as error:
            raise Unreadable(f"the model is damaged: {type(error).__name__}: {error}") from None
        fits = self.scorer.outputs == self.rule.outputs and bool(self.space.axes)
        expect(fits, "the model has another number of scores than its rule")

    @staticmethod
    def schema(file: ModelFile) -> bytes:
        """Return the schema that the certificate of a model must have."""
        names = {"columns": "space", "outcomes": "outcomes", "rule": "rule"}
        parts = {name: file.description.get(key) for name, key in names.items()}
        return canonical({**parts, "relation": RELATION})


def check_header(header: dict[str, Any], schema: bytes, file: ModelFile) -> None:
    """Raise unless model and schema are those of the certificate."""
    expect(header["relation"] == RELATION, f"{UNKNOWN}another relation", Unchecked)
    same = digest(file.content) == header["model_sha256"]
    expect(same, "the model is not the one of the certificate")
    expect(Model.schema(file) == schema, "schema.json is not the schema of the model")
    rule = digest(canonical(file.description.get("rule")))
    expect(rule == header["rule_sha256"], "the rule is not the one of the certificate")


class ClaimChecker:
    """Checks the claims about the people of one model."""

    def __init__(self, model: Model, seconds: float = float("inf")) -> None:
        self.model, self.seconds = model, seconds

    def check(self, claim: dict[str, Any]) -> str:
        """Return what was proved; raise `Refuted` or `Unchecked`."""
        try:
            _check_fields(claim)
            if claim["verdict"] == "not audited":
                return "no claim"
            Person(self.model, claim, time.process_time() + self.seconds).check()
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise Refuted(f"the claim is malformed: {error}") from None
        proved = claim["verdict"] in ("fair", "unfair")
        return str(claim["verdict"]) if proved else "no verdict claimed"


def _check_fields(claim: dict[str, Any]) -> None:
    fields = COMMON | {"person", "decision", "fair_decision", EVIDENCE.get(claim["verdict"], "")}
    expected = COMMON | {"reason"} if claim["verdict"] == "not audited" else fields
    known = claim.keys() == expected
    expect(known, "the claim has unknown or missing fields", Refuted)
    texts = type(claim["id"]) is str and type(claim["salt"]) is str and len(claim["salt"]) == 32
    expect(texts, "the claim has an invalid id or salt", Refuted)


class Person:
    """A person whose claim is checked, and the person's counterparts."""

    def __init__(self, model: Model, claim: dict[str, Any], deadline: float) -> None:
        self.claim, self.deadline, self.votes = claim, deadline, model.votes
        self.space, self.regression = model.space, model.rule.kind == "Tolerance"
        values = self.space.values(self.space.raw, claim["person"])
        cells = list(zip(self.space.raw, values, strict=True))
        self.own = [axis.index(value) for axis, value in cells if axis.sensitive]
        row = chain(*(self.space.codes(column, value) for column, value in cells))
        self.counterparts = model.scorer.restrict(dict(row))
        self.rule = model.rule.scaled(self.counterparts.unit)
        self.whole: Box = [(0, axis.count - 1) for axis in self.space.axes]

    def check(self) -> None:
        """Raise unless the claim was proved."""
        scores, verdict = self.counterparts.scores(self.own), self.claim["verdict"]
        self.decision = nearest(scores[0] * self.counterparts.unit) if self.regression else (
            self.rule.decide(scores)
        )  # fmt: skip
        self._compare("decision", self.decision)
        if verdict == "unfair":
            self._check_pair(self.claim["pair"])
        if verdict == "fair":
            self._check_proof(self.claim["proof"])
        if self.claim["fair_decision"] is None:
            return
        if verdict == "fair" and self.votes.vote == "majority" and not self.regression:
            self._compare("fair_decision", self.decision)  # all votes are for it
            return
        try:
            segments = self._segments(self.whole)
            outcome = self.votes.decide(segments, self.rule, self.counterparts.unit)
        except Unchecked as error:
            words = f"{error}; everything but the fair decision was proved"
            raise Unchecked(words) from None
        self._compare("fair_decision", nearest(outcome) if self.regression else outcome)

    def _compare(self, what: str, true: int | Fraction) -> None:
        """Compare a decision, or a score as an exact text; null claims nothing."""
        stated = self.claim[what]
        if stated is not None:
            got = exact(stated) if self.regression else stated
            expect(type(got) is type(true) and got == true, f"the {what} is another one", Refuted)

    def _check_pair(self, pair: dict[str, Any]) -> None:
        lists = all(type(ends) is list and len(ends) == 2 for ends in pair.values())
        expect(lists and pair.keys() == {"people", "scores"}, "the pair is malformed", Refuted)
        people = [self.space.values(self.space.axes, cells) for cells in pair["people"]]
        ends = [list(map(Column.index, self.space.axes, values)) for values in people]
        scores = [self.counterparts.scores(indices) for indices in ends]
        unit = self.counterparts.unit * self.counterparts.denominator
        for stated, true in zip(pair["scores"], scores, strict=True):
            same = type(stated) is list and [exact(text) / unit for text in stated] == true
            expect(same, "a person of the pair has other scores", Refuted)
        if self.regression:
            apart = abs(scores[0][0] - scores[1][0]) > self.rule.level
            expect(apart, "the scores of the pair are within the tolerance", Refuted)
            return
        expect(ends[0] == self.own, "the pair does not begin with the person", Refuted)
        differ = self.rule.decide(scores[0]) != self.rule.decide(scores[1])
        expect(differ, "the pair gets the same decision", Refuted)

    def _check_proof(self, proof: dict[str, Any]) -> None:
        leaves, center = [self.whole], None
        if proof.keys() == {"counterparts"}:
            count = proof["counterparts"]
            counted = type(count) is int and count == self.space.size
            expect(counted, "the proof is about another number of counterparts", Refuted)
        else:
            fields = {"tree"} | ({"center"} if self.regression else set())
            expect(proof.keys() == fields, "the proof has unknown or missing fields", Refuted)
            leaves = _leaves(proof["tree"], self.whole)
            if self.regression:
                center = exact(proof["center"]) / self.counterparts.unit
        for box in leaves:
            self._check_leaf(box, center)

    def _check_leaf(self, box: Box, center: Fraction | None) -> None:
        """Raise unless all counterparts of a box get the decision, or scores near the center."""
        minimum = partial(self.counterparts.minimum, box)
        large = _count(box) > MAX_COUNTERPARTS
        if self.regression:
            low, high = (minimum([1]), -minimum([-1])) if large else self._span(box)
            middle = Fraction(low + high) / 2 if center is None else center
            proved = 2 * max(high - middle, middle - low) <= self.rule.level
        elif large:
            proved = self.rule.is_bounded(minimum, self.decision)
        else:
            parts = chain.from_iterable(map(self.rule.decisions, self._segments(box)))
            proved = all(decision == self.decision for decision, _ in parts)
        words = (
            "bounds leave counterparts undecided"
            if large
            else "a counterpart is treated differently"
        )
        expect(proved, words, Unchecked if large else Refuted)

    def _span(self, box: Box) -> tuple[Number, Number]:
        """Return the lowest and the highest score."""
        segments = list(self._segments(box))
        ends = [s.at(offset)[0] for s in segments for offset in (s.offsets[0], s.offsets[-1])]
        return min(ends), max(ends)

    def _segments(self, box: Box) -> Iterator[Segment]:
        """Yield segments until the time is up."""
        few = _count(box) <= MAX_COUNTERPARTS
        expect(few, f"more than {MAX_COUNTERPARTS} counterparts", Unchecked)
        for segment in self.counterparts.segments(box):
            expect(time.process_time() <= self.deadline, "out of time", Unchecked)
            yield segment


def _leaves(tree: Any, whole: Box) -> list[Box]:
    """Apply the cuts of a tree; the leaves together contain every counterpart."""
    expect(type(tree) is list and len(tree) <= MAX_NODES, "the proof has no valid tree", Refuted)
    stack, leaves = [whole], []
    for node in tree:
        expect(bool(stack), "the tree has nodes after its end", Refuted)
        box = stack.pop()
        if type(node) is int and node == 0:
            leaves.append(box)
            continue
        axis, at = node
        inside = type(axis) is type(at) is int and 0 <= axis < len(box)
        expect(inside, "the tree cuts a column that is not sensitive", Refuted)
        low, high = box[axis]
        expect(low <= at < high, "the tree cuts outside a box", Refuted)
        halves = (at + 1, high), (low, at)
        stack += [[*box[:axis], half, *box[axis + 1 :]] for half in halves]
    expect(not stack, "the tree leaves counterparts without a proof", Refuted)
    return leaves


def _count(box: Box) -> int:
    return prod(high - low + 1 for low, high in box)
