"""Votes: what a majority, a median or a mean of all counterparts decides."""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import accumulate

from feta_check.means import Means
from feta_check.model_file import ModelFile
from feta_check.people import Space
from feta_check.reading import Number, canonical, checkable, readable
from feta_check.rules import Rule
from feta_check.segments import Segment

FIELDS = {"fitted_on", "graded", "level", "vote", "weighted"}
MAJORITY = {"graded": False, "level": None, "vote": "majority", "weighted": False}


class Votes:
    """How the counterparts of a person vote."""

    def __init__(self, file: ModelFile, rule: Rule, space: Space) -> None:
        entry = file.description.get("votes", MAJORITY)
        checkable(entry.keys() <= FIELDS, "these votes")
        self.vote, self.size, lists = entry["vote"], space.size, None
        self.weights: dict[int, int] | None = None
        if entry["weighted"]:
            lists = [file.array(f"votes.{name}", 1) for name in ("assignment_ids", "votes")]
            self.weights = dict(zip(*lists, strict=True))
            known = all(0 <= number < space.size for number in self.weights)
            valid = known and len(self.weights) == len(lists[0]) and min(lists[1], default=0) > 0
            readable(valid, "the model has invalid vote weights")
        self.means = Means(file, entry, rule)
        ballot = self.means.ballot
        facts = {"ballot": ballot, "level": self.means.level_text, "vote": self.vote}
        self.json = canonical(facts | {"weights": lists})

    def of(self, ids: Sequence[int]) -> int:
        """Return the votes of these counterparts."""
        if self.weights is None:
            return len(ids)
        return sum(self.weights.get(number, 0) for number in ids)

    def decide(self, segments: Iterable[Segment], rule: Rule, unit: Fraction) -> int | Fraction:
        """Return the fair decision; regression: the exact median or mean."""
        if self.vote == "majority":
            return (
                self._median(segments) * unit
                if rule.kind == "Tolerance"
                else self._most(segments, rule)
            )
        points = (point for segment in segments for point in segment.points())
        votes = ((self.of((number,)), scores) for number, scores in points)
        return self.means.decide(votes, rule, unit)

    def _most(self, segments: Iterable[Segment], rule: Rule) -> int:
        counts = [0] * (rule.outputs if rule.kind == "Argmax" else 2)
        for segment in segments:
            for decision, ids in rule.decisions(segment):
                counts[decision] += self.of(ids)
        return counts.index(max(counts)) if rule.kind == "Argmax" else int(counts[1] >= counts[0])

    def _median(self, segments: Iterable[Segment]) -> Number:
        points = (point for segment in segments for point in segment.points())
        ranked = sorted((scores[0], self.of((number,))) for number, scores in points)
        total, seen = self.of(range(self.size)), accumulate(votes for _, votes in ranked)
        return next(y for (y, _), n in zip(ranked, seen, strict=True) if 2 * n >= total)
