"""Rules: from scores to decisions, and from the votes of all counterparts to a fair decision."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from itertools import accumulate
from typing import Any

from feta_check.means import Means
from feta_check.model_file import ModelFile
from feta_check.reading import Number, canonical, checkable, number_of, readable

FIELDS = {
    "Threshold": {"kind", "value", "favors", "equality"},
    "Argmax": {"kind", "classes"},
    "OneVsRest": {"kind", "classes", "chosen"},
    "Tolerance": {"kind", "epsilon"},
}
VOTES = {"fitted_on", "graded", "level", "vote", "weighted"}
MAJORITY = {"graded": False, "level": None, "vote": "majority", "weighted": False}

Scores = Sequence[Number]
Minimum = Callable[[list[int]], Number]  # a lower bound on a linear function of the scores
Points = Iterable[tuple[int, Scores]]  # the id of each counterpart, or its votes, and its scores


class Rule:
    """A rule, for scores that are integers times a unit.

    Candidates compete: scores, by their places, and after them the level, a threshold. The largest
    one wins, the first of the list on a tie, and its decision is taken.
    """

    def __init__(self, entry: dict[str, Any], unit: Fraction) -> None:
        self.entry, self.unit, self.kind = entry, unit, entry["kind"]
        checkable(self.kind in FIELDS, f"the rule {self.kind!r}")
        self.above, self.regression = entry.get("favors") == "above", self.kind == "Tolerance"
        level = Fraction(number_of(entry.get("value", entry.get("epsilon", 0)))) / unit
        self.level: Number = level.numerator if level.denominator == 1 else level
        classes = entry.get("classes", [""])
        valid = entry.keys() == FIELDS[self.kind] and (level >= 0 or self.kind == "Threshold")
        valid = valid and type(classes) is list and (len(classes) > 1 or "classes" not in entry)
        readable(valid, "the model has an invalid rule")
        self.outputs = len(classes)
        self.candidates = [(place, place) for place in range(self.outputs)]
        if self.kind == "Threshold":
            below = ("above", "below").index(entry["favors"])
            strict = ("favorable", "unfavorable").index(entry["equality"])
            self.candidates = [(below, 1), (1 - below, 0)][:: 1 - 2 * strict]
        if self.kind == "OneVsRest":
            chosen = classes.index(entry["chosen"])
            self.candidates = [(place, int(place == chosen)) for place in range(self.outputs)]

    def decide(self, scores: Scores) -> int:
        """Return the decision."""
        values = [*scores, self.level]
        return max(self.candidates, key=lambda candidate: values[candidate[0]])[1]

    def is_fair(self, points: Iterable[Scores], decision: int, center: Number | None) -> bool:
        """Return whether all points get a decision; regression: whether they are near a center."""
        if not self.regression:
            return all(self.decide(scores) == decision for scores in points)
        scores = [y for (y,) in points]
        return self.is_bounded(lambda row: min(row[0] * y for y in scores), decision, center)

    def is_bounded(self, minimum: Minimum, decision: int, center: Number | None) -> bool:
        """Return whether bounds prove it: some candidate of the decision beats each other one."""
        if self.regression:
            low, high = minimum([1]), -minimum([-1])
            middle = Fraction(low + high, 2) if center is None else center
            return bool(2 * max(high - middle, middle - low) <= self.level)

        def beats(winner: int, loser: int) -> bool:
            first, second = self.candidates[winner][0], self.candidates[loser][0]
            row = [(place == first) - (place == second) for place in range(self.outputs + 1)]
            margin = minimum(row[:-1]) + row[-1] * self.level
            return margin > 0 or (margin == 0 and winner < loser)

        mine = [place for place, (_, of) in enumerate(self.candidates) if of == decision]
        others = set(range(len(self.candidates))).difference(mine)
        return all(any(beats(winner, loser) for winner in mine) for loser in others)

    def most(self, votes: Points) -> int | Fraction:
        """Return the decision with the most votes; regression: the lower median."""
        if self.regression:
            ranked = sorted((scores[0], count) for count, scores in votes)
            sums = list(accumulate(count for _, count in ranked))
            return ranked[bisect_left(sums, Fraction(sums[-1], 2))][0] * self.unit
        counts = [0] * max(2, self.outputs)
        for count, scores in votes:
            counts[self.decide(scores)] += count
        return counts.index(max(counts)) if self.kind == "Argmax" else int(counts[1] >= counts[0])


class Votes:
    """How the counterparts of a person vote."""

    def __init__(self, file: ModelFile, size: int) -> None:
        entry = file.description.get("votes", MAJORITY)
        checkable(entry.keys() <= VOTES, "these votes")
        self.vote, self.means, lists = entry["vote"], Means(file, entry), None
        self.weights = dict[int, int]()  # without any, each counterpart has one vote
        if entry["weighted"]:
            ids, counts = lists = [file.vector("votes.assignment_ids"), file.vector("votes.votes")]
            self.weights = dict(zip(ids, counts, strict=True))
            valid = all(type(number) is int for number in (*ids, *counts)) and min(counts) > 0
            valid = valid and 0 <= min(ids) <= max(ids) < size and len(self.weights) == len(ids)
            readable(valid, "the model has invalid vote weights")
        facts = {"ballot": self.means.ballot, "level": self.means.level_text, "vote": self.vote}
        self.json = canonical(facts | {"weights": lists})

    def decide(self, points: Points, rule: Rule) -> int | Fraction:
        """Return the fair decision; regression: the exact median or mean."""
        missing = 0 if self.weights else 1
        votes = ((self.weights.get(number, missing), scores) for number, scores in points)
        return rule.most(votes) if self.vote == "majority" else self.means.decide(votes, rule)
