"""Claims: each one is proved again, refuted, or left unchecked."""

import time
from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from itertools import chain
from math import prod
from typing import Any

from feta_check.model import Model
from feta_check.people import Column
from feta_check.reading import Number, Refuted, Unchecked, describe, exact, holds, nearest
from feta_check.segments import Box, Segment

MAX_COUNTERPARTS, MAX_NODES = 2**20, 100_000
COMMON = {"id", "row", "salt", "verdict"}
EVIDENCE = {"fair": "proof", "unfair": "pair", "undecided": "reason"}


class ClaimChecker:
    """Checks the claims about the people of one model."""

    def __init__(self, model: Model, seconds: float = float("inf")) -> None:
        self.model, self.seconds = model, seconds

    def check(self, claim: dict[str, Any]) -> str:
        """Return what was proved; raise `Refuted` or `Unchecked`."""
        with describe("the claim is malformed", Refuted):
            _check_fields(claim)
            if claim["verdict"] == "not audited":
                return "no claim"
            Person(self.model, claim, time.process_time() + self.seconds).check()
        proved = claim["verdict"] in ("fair", "unfair")
        return str(claim["verdict"]) if proved else "no verdict claimed"


def _check_fields(claim: dict[str, Any]) -> None:
    fields = COMMON | {"person", "decision", "fair_decision", EVIDENCE.get(claim["verdict"], "")}
    expected = COMMON | {"reason"} if claim["verdict"] == "not audited" else fields
    holds(claim.keys() == expected, "the claim has unknown or missing fields")
    texts = type(claim["id"]) is str and type(claim["salt"]) is str and len(claim["salt"]) == 32
    holds(texts, "the claim has an invalid id or salt")


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
        self.unit = self.counterparts.unit
        self.rule = model.rule.scaled(self.unit)
        self.whole: Box = [(0, axis.count - 1) for axis in self.space.axes]

    def check(self) -> None:
        """Raise unless the claim was proved."""
        scores, verdict = self.counterparts.scores(self.own), self.claim["verdict"]
        self.decision = self.rule.decide(scores)
        self._compare("decision", scores[0] * self.unit if self.regression else self.decision)
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
            outcome = self.votes.decide(segments, self.rule, self.unit)
        except Unchecked as error:
            words = f"{error}; all but the fair decision was proved"
            raise Unchecked(words) from None
        self._compare("fair_decision", outcome)

    def _compare(self, what: str, true: int | Fraction) -> None:
        """Compare a decision, or a score as an exact text; null claims nothing."""
        stated = self.claim[what]
        if stated is not None:
            got = exact(stated) if self.regression else stated
            right = nearest(Fraction(true)) if self.regression else true
            holds(type(got) is type(right) and got == right, f"the {what} is another one")

    def _check_pair(self, pair: dict[str, Any]) -> None:
        lists = all(type(ends) is list and len(ends) == 2 for ends in pair.values())
        holds(lists and pair.keys() == {"people", "scores"}, "the pair is malformed")
        people = [self.space.values(self.space.axes, cells) for cells in pair["people"]]
        ends = [list(map(Column.index, self.space.axes, values)) for values in people]
        scores = [self.counterparts.scores(indices) for indices in ends]
        unit = self.unit * self.counterparts.denominator
        for stated, true in zip(pair["scores"], scores, strict=True):
            same = type(stated) is list and [exact(text) / unit for text in stated] == true
            holds(same, "a person of the pair has other scores")
        if self.regression:
            apart = abs(scores[0][0] - scores[1][0]) > self.rule.level
            holds(apart, "the scores of the pair are within the tolerance")
            return
        holds(ends[0] == self.own, "the pair does not begin with the person")
        differ = self.rule.decide(scores[0]) != self.rule.decide(scores[1])
        holds(differ, "the pair gets the same decision")

    def _check_proof(self, proof: dict[str, Any]) -> None:
        leaves, center = [self.whole], None
        if proof.keys() == {"counterparts"}:
            count = proof["counterparts"]
            counted = type(count) is int and count == self.space.size
            holds(counted, "the proof is about another number of counterparts")
        else:
            fields = {"tree"} | ({"center"} if self.regression else set())
            holds(proof.keys() == fields, "the proof has unknown or missing fields")
            leaves = _leaves(proof["tree"], self.whole)
            if self.regression:
                center = exact(proof["center"]) / self.unit
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
        if large and not proved:
            raise Unchecked("bounds leave counterparts undecided")
        holds(proved, "a counterpart is treated differently")

    def _span(self, box: Box) -> tuple[Number, Number]:
        """Return the lowest and the highest score."""
        segments = list(self._segments(box))
        ends = [s.at(offset)[0] for s in segments for offset in (s.offsets[0], s.offsets[-1])]
        return min(ends), max(ends)

    def _segments(self, box: Box) -> Iterator[Segment]:
        """Yield segments until the time is up."""
        if _count(box) > MAX_COUNTERPARTS:
            raise Unchecked(f"more than {MAX_COUNTERPARTS} counterparts")
        for segment in self.counterparts.segments(box):
            if time.process_time() > self.deadline:
                raise Unchecked("out of time")
            yield segment


def _leaves(tree: Any, whole: Box) -> list[Box]:
    """Apply the cuts of a tree; the leaves together contain every counterpart."""
    holds(type(tree) is list and len(tree) <= MAX_NODES, "the proof has no valid tree")
    stack, leaves = [whole], []
    for node in tree:
        holds(bool(stack), "the tree has nodes after its end")
        box = stack.pop()
        if type(node) is int and node == 0:
            leaves.append(box)
            continue
        axis, at = node
        inside = type(axis) is type(at) is int and 0 <= axis < len(box)
        holds(inside, "the tree cuts a column that is not sensitive")
        low, high = box[axis]
        holds(low <= at < high, "the tree cuts outside a box")
        halves = (at + 1, high), (low, at)
        stack += [[*box[:axis], half, *box[axis + 1 :]] for half in halves]
    holds(not stack, "the tree leaves counterparts without a proof")
    return leaves


def _count(box: Box) -> int:
    return prod(high - low + 1 for low, high in box)
