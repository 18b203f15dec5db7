"""Claims: each one is proved again, refuted, or left unchecked."""

import time
from collections.abc import Iterator
from fractions import Fraction
from itertools import chain
from math import prod
from typing import Any

from feta_check.model import Model
from feta_check.people import Box, Column
from feta_check.reading import Number, Refuted, Unchecked, describe, exact, holds, nearest
from feta_check.rules import Rule, Scores

MAX_COUNTERPARTS, MAX_NODES = 2**20, 100_000
COMMON = {"id", "row", "salt", "verdict"}
DECIDED = COMMON | {"person", "decision", "fair_decision"}
FIELDS = {
    "fair": DECIDED | {"proof"},
    "unfair": DECIDED | {"pair"},
    "undecided": DECIDED | {"reason"},
    "not audited": COMMON | {"reason"},
}


class ClaimChecker:
    """Checks the claims about the people of one model."""

    def __init__(self, model: Model, seconds: float = float("inf")) -> None:
        self.model, self.seconds = model, seconds

    def check(self, claim: dict[str, Any]) -> str:
        """Return what was proved; raise `Refuted` or `Unchecked`."""
        with describe("the claim is malformed", Refuted):
            verdict, texts = str(claim["verdict"]), [claim["id"], claim["salt"]]
            holds(claim.keys() == FIELDS[verdict], "the claim has unknown or missing fields")
            valid = all(type(text) is str for text in texts) and len(texts[1]) == 32
            holds(valid, "the claim has an invalid id or salt")
            if verdict == "not audited":
                return "no claim"
            Person(self.model, claim, time.process_time() + self.seconds).check()
        return verdict if verdict != "undecided" else "no verdict claimed"


class Person:
    """A person whose claim is checked, and the person's counterparts."""

    def __init__(self, model: Model, claim: dict[str, Any], deadline: float) -> None:
        self.claim, self.deadline, self.votes = claim, deadline, model.votes
        self.space = space = model.space
        cells = list(zip(space.raw, space.values(space.raw, claim["person"]), strict=True))
        self.own = [axis.index(value) for axis, value in cells if axis in space.axes]
        shared = [space.codes(*cell) for cell in cells if cell[0] not in space.axes]
        self.counterparts = model.scorer.restrict(dict(chain(*shared)))
        self.rule = Rule(model.rule.entry, self.counterparts.unit)
        self.whole: Box = [(0, axis.count - 1) for axis in space.axes]

    def check(self) -> None:
        """Raise unless the claim was proved."""
        scores, verdict = self.counterparts.scores(self.own), self.claim["verdict"]
        self.decision, regression = self.rule.decide(scores), self.rule.regression
        self._compare("decision", scores[0] * self.rule.unit if regression else self.decision)
        if verdict == "unfair":
            self._check_pair(**self.claim["pair"])
        if verdict == "fair":
            self._check_proof(self.claim["proof"])
        outcome: int | Fraction = self.decision  # if all votes are for it
        implied = verdict == "fair" and self.votes.vote == "majority" and not regression
        if self.claim["fair_decision"] is not None and not implied:
            try:
                outcome = self.votes.decide(self._points(self.whole), self.rule)
            except Unchecked as error:
                raise Unchecked(f"{error}; all but the fair decision was proved") from None
        self._compare("fair_decision", outcome)

    def _compare(self, what: str, true: int | Fraction) -> None:
        """Compare a decision, or a score as an exact text; null claims nothing."""
        stated = self.claim[what]
        if stated is not None and self.rule.regression:
            holds(exact(stated) == nearest(true), f"the {what} is another one")
        elif stated is not None:
            holds(type(stated) is int and stated == true, f"the {what} is another one")

    def _check_pair(self, people: list[Any], scores: list[Any]) -> None:
        holds(type(people) is type(scores) is list, "the pair is malformed")
        ends = [
            list(map(Column.index, self.space.axes, self.space.values(self.space.axes, cells)))
            for cells in people
        ]
        first, second = true = [self.counterparts.scores(indices) for indices in ends]
        unit = self.rule.unit * self.counterparts.denominator
        for stated, computed in zip(scores, true, strict=True):
            same = type(stated) is list and [exact(text) / unit for text in stated] == computed
            holds(same, "a person of the pair has other scores")
        if self.rule.regression:
            apart = abs(first[0] - second[0]) > self.rule.level
            holds(apart, "the scores of the pair are within the tolerance")
        else:
            holds(ends[0] == self.own, "the pair does not begin with the person")
            differ = self.rule.decide(first) != self.rule.decide(second)
            holds(differ, "the pair gets the same decision")

    def _check_proof(self, proof: dict[str, Any]) -> None:
        fields, tree, center = {"tree"}, proof.get("tree", [0]), None
        if "counterparts" in proof:
            fields, count = {"counterparts"}, proof["counterparts"]
            counted = type(count) is int and count == self.space.size
            holds(counted, "the proof is about another number of counterparts")
        elif self.rule.regression:
            fields, center = {"center", "tree"}, exact(proof["center"])
        holds(proof.keys() == fields, "the proof has unknown or missing fields")
        for box in _leaves(tree, self.whole):
            large = _count(box) > MAX_COUNTERPARTS
            proved = self._is_fair(box, large, center)
            if large and not proved:
                raise Unchecked("bounds leave counterparts undecided")
            holds(proved, "a counterpart is treated differently")

    def _is_fair(self, box: Box, large: bool, center: Number | None) -> bool:
        """Return whether all of a box get the decision, or scores near the center."""
        if self.rule.regression:
            if large:
                minimum = self.counterparts.bounds(box)
                low, high = minimum([1]), -minimum([-1])
            else:
                ends = [scores[0] for _, scores in self._points(box)]
                low, high = min(ends), max(ends)
            middle = Fraction(low + high, 2) if center is None else center / self.rule.unit
            return bool(2 * max(high - middle, middle - low) <= self.rule.level)
        if large:
            return self.rule.is_bounded(self.counterparts.bounds(box), self.decision)
        return all(self.rule.decide(scores) == self.decision for _, scores in self._points(box))

    def _points(self, box: Box) -> Iterator[tuple[int, Scores]]:
        """Yield the ids and scores of a box until the time is up."""
        if _count(box) > MAX_COUNTERPARTS:
            raise Unchecked(f"more than {MAX_COUNTERPARTS} counterparts")
        for place, point in enumerate(self.counterparts.points(box)):
            if place % 64 == 0 and time.process_time() > self.deadline:
                raise Unchecked("out of time")
            yield point


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
        stack += [[*box[:axis], half, *box[axis + 1 :]] for half in ((at + 1, high), (low, at))]
    holds(not stack, "the tree leaves counterparts without a proof")
    return leaves


def _count(box: Box) -> int:
    return prod(high - low + 1 for low, high in box)
