"""Rules: from scores to decisions, and from the votes of all counterparts to a fair decision."""

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
        self.entry, self.unit, kind = entry, unit, entry["kind"]
        checkable(kind in FIELDS, f"the rule {kind!r}")
        level, classes = entry.get("value", entry.get("epsilon", 0)), entry.get("classes", [""])
        favors, equality = entry.get("favors", "above"), entry.get("equality", "favorable")
        scaled = Fraction(number_of(level)) / unit
        valid = entry.keys() == FIELDS[kind] and type(classes) is list
        valid &= favors in ("above", "below") and equality in ("favorable", "unfavorable")
        valid &= (len(classes) > 1) == ("classes" in entry)
        readable(valid and (scaled >= 0 or kind == "Threshold"), "the model has an invalid rule")
        self.kind, self.above, self.outputs = kind, favors == "above", len(classes)
        self.regression = kind == "Tolerance"
        self.level: Number = scaled.numerator if scaled.denominator == 1 else scaled
        self.candidates = [(place, place) for place in range(self.outputs)]
        if kind == "Threshold":
            self.candidates = [(int(not self.above), 1), (int(self.above), 0)]
            if equality == "unfavorable":
                self.candidates.reverse()
        if kind == "OneVsRest":
            chosen = classes.index(entry["chosen"])
            self.candidates = [(place, int(place == chosen)) for place in range(self.outputs)]

    def decide(self, scores: Scores) -> int:
        """Return the decision."""
        values = [*scores, self.level]
        return max(self.candidates, key=lambda candidate: values[candidate[0]])[1]

    def is_bounded(self, minimum: Minimum, decision: int) -> bool:
        """Return whether bounds prove a decision: some candidate of it beats each other one."""

        def beats(winner: int, loser: int) -> bool:
            ends = [self.candidates[place][0] for place in (winner, loser)]
            row = [(index == ends[0]) - (index == ends[1]) for index in range(self.outputs + 1)]
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
            middle = next(place for place, n in enumerate(sums) if 2 * n >= sums[-1])
            return ranked[middle][0] * self.unit
        counts = [0] * max(2, self.outputs)
        for count, scores in votes:
            counts[self.decide(scores)] += count
        return counts.index(max(counts)) if self.kind == "Argmax" else int(counts[1] >= counts[0])


class Votes:
    """How the counterparts of a person vote."""

    def __init__(self, file: ModelFile, size: int) -> None:
        entry = file.description.get("votes", MAJORITY)
        checkable(entry.keys() <= VOTES, "these votes")
        self.vote, lists = entry["vote"], None
        self.weights: dict[int, int] | None = None
        if entry["weighted"]:
            names = "votes.assignment_ids", "votes.votes"
            ids, counts = lists = [file.array(name, 1) for name in names]
            self.weights = dict(zip(ids, counts, strict=True))
            whole = all(type(number) is int for number in (*ids, *counts))
            valid = whole and len(self.weights) == len(ids) and min(counts) > 0
            valid = valid and 0 <= min(ids) <= max(ids) < size
            readable(valid, "the model has invalid vote weights")
        self.means = Means(file, entry)
        facts = {"ballot": self.means.ballot, "level": self.means.level_text, "vote": self.vote}
        self.json = canonical(facts | {"weights": lists})

    def decide(self, points: Points, rule: Rule) -> int | Fraction:
        """Return the fair decision; regression: the exact median or mean."""
        if self.weights is not None:
            points = ((self.weights.get(number, 0), scores) for number, scores in points)
        else:
            points = ((1, scores) for _, scores in points)
        return rule.most(points) if self.vote == "majority" else self.means.decide(points, rule)
