"""Claims: each one is proved again, refuted, or left unchecked."""

import time
from collections.abc import Iterator
from fractions import Fraction
from itertools import chain
from math import inf, prod
from typing import Any

from feta_check.model import Model
from feta_check.people import Box, Column
from feta_check.reading import Refuted, Unchecked, describe, exact, exact_text, holds, nearest
from feta_check.rules import Rule, Scores

MAX_COUNTERPARTS, MAX_NODES = 2**20, 100_000
COMMON, DECIDED = {"id", "row", "salt", "verdict"}, {"person", "decision", "fair_decision"}
EVIDENCE = {"fair": "proof", "unfair": "pair", "undecided": "reason", "not audited": "reason"}


def check_claim(model: Model, claim: dict[str, Any], seconds: float = inf) -> str:
    """Return what was proved; raise `Refuted` or `Unchecked`."""
    with describe("the claim is malformed", Refuted):
        verdict, salt = str(claim["verdict"]), claim["salt"]
        fields = COMMON | {EVIDENCE[verdict]} | (DECIDED if verdict != "not audited" else set())
        holds(claim.keys() == fields, "the claim has unknown or missing fields")
        valid = type(claim["id"]) is type(salt) is str and len(salt) == 32
        holds(valid, "the claim has an invalid id or salt")
        if verdict == "not audited":
            return "no claim"
        Person(model, claim, time.process_time() + seconds).check()
    return verdict if verdict != "undecided" else "no verdict claimed"


class Person:
    """A person whose claim is checked, and the person's counterparts."""

    def __init__(self, model: Model, claim: dict[str, Any], deadline: float) -> None:
        self.claim, self.deadline, self.votes = claim, deadline, model.votes
        self.space, columns = model.space, model.space.raw
        cells = dict(zip(columns, self.space.values(columns, claim["person"]), strict=True))
        self.own = [axis.index(cells.pop(axis)) for axis in self.space.axes]
        shared = [column.codes(value) for column, value in cells.items()]
        self.counterparts = model.scorer.restrict(dict(chain(*shared)))
        self.rule = Rule(model.rule.entry, self.counterparts.unit)
        self.whole: Box = [(0, axis.count - 1) for axis in self.space.axes]

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
        if stated is not None:
            known = exact_text(nearest(true)) if self.rule.regression else true
            same = type(stated) is type(known) and stated == known
            holds(same, f"the {what} is another one")

    def _check_pair(self, people: list[Any], scores: list[Any]) -> None:
        axes, unit = self.space.axes, self.rule.unit * self.counterparts.denominator
        ends = [list(map(Column.index, axes, self.space.values(axes, cells))) for cells in people]
        own = self.rule.regression or ends[0] == self.own
        holds(own and len(ends) == 2, "the pair does not begin with the person")
        found = [self.counterparts.scores(indices) for indices in ends]
        texts = [[exact_text(score * unit) for score in person] for person in found]
        holds(texts == scores, "the people of the pair have other scores")
        same = self.rule.is_fair(found, self.decision, center=None)
        holds(not same, "the pair is no counterexample: both people are treated the same")

    def _check_proof(self, proof: dict[str, Any]) -> None:
        fields, tree, center = {"tree"}, proof.get("tree", [0]), None
        if "counterparts" in proof:
            fields, count = {"counterparts"}, proof["counterparts"]
            counted = type(count) is int and count == self.space.size
            holds(counted, "the proof is about another number of counterparts")
        elif self.rule.regression:
            fields, center = {"center", "tree"}, exact(proof["center"]) / self.rule.unit
        holds(proof.keys() == fields, "the proof has unknown or missing fields")
        for box in _leaves(tree, self.whole):
            if _count(box) > MAX_COUNTERPARTS:
                bounds = self.counterparts.bounds(box)
                if not self.rule.is_bounded(bounds, self.decision, center):
                    raise Unchecked("bounds leave counterparts undecided")
            else:
                scores = (scores for _, scores in self._points(box))
                fair = self.rule.is_fair(scores, self.decision, center)
                holds(fair, "a counterpart is treated differently")

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
