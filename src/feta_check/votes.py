"""Votes: what a majority, a median or a mean of all counterparts decides."""

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import accumulate

from feta_check.ballot import Ballot
from feta_check.model_file import ModelFile
from feta_check.people import Space
from feta_check.reading import Number, Unchecked, canonical, exact_text, expect
from feta_check.rules import Rule
from feta_check.segments import Segment

FIELDS = {"fitted_on", "graded", "level", "vote", "weighted"}
MAJORITY = {"graded": False, "level": None, "vote": "majority", "weighted": False}


class Votes:
    """How the counterparts of a person vote."""

    def __init__(self, file: ModelFile, rule: Rule, space: Space) -> None:
        entry = file.description.get("votes", MAJORITY)
        expect(entry.keys() <= FIELDS, "not checkable by this program: these votes", Unchecked)
        level, lists = entry["level"], None
        self.rule, self.vote, self.size = rule, entry["vote"], space.size
        self.level = None if level is None else Fraction(float.fromhex(level))
        self.weights: dict[int, int] | None = None
        if entry["weighted"]:
            lists = [file.array(f"votes.{name}", 1) for name in ("assignment_ids", "votes")]
            self.weights = dict(zip(*lists, strict=True))
            known = all(0 <= number < space.size for number in self.weights)
            valid = known and len(self.weights) == len(lists[0]) and min(lists[1], default=0) > 0
            expect(valid, "the model has invalid vote weights")
        self.ballot = Ballot(file) if entry["graded"] else None
        self.json = canonical({
            "ballot": None if self.ballot is None else self.ballot.json,
            "level": None if self.level is None else exact_text(self.level),
            "vote": self.vote,
            "weights": lists,
        })  # fmt: skip

    def of(self, ids: Sequence[int]) -> int:
        """Return the votes of these counterparts."""
        if self.weights is None:
            return len(ids)
        return sum(self.weights.get(number, 0) for number in ids)

    def decide(self, segments: Iterable[Segment], rule: Rule, unit: Fraction) -> int | Fraction:
        """Return the fair decision; regression: the exact median or mean."""
        if self.vote == "majority":
            return self._median(segments) * unit if rule.regression else self._most(segments, rule)
        points = (point for segment in segments for point in segment.points())
        votes = ((self.of((number,)), scores) for number, scores in points)
        if self.vote == "mean_score":
            return self._mean(votes, rule, unit)
        known = self.vote == "mean_probability" and self.ballot is not None
        known &= rule.kind == "Threshold" and self.level is not None
        expect(known, "not checkable by this program: this vote", Unchecked)
        assert self.ballot is not None
        assert self.level is not None
        return self.ballot.decide(votes, unit, self.level, above=rule.above)

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

    def _mean(
        self, votes: Iterator[tuple[int, Sequence[int]]], rule: Rule, unit: Fraction
    ) -> int | Fraction:
        sums, total = [0] * rule.outputs, 0
        for count, scores in votes:
            total += count
            sums = [a + count * y for a, y in zip(sums, scores, strict=True)]
        if rule.regression:
            return sums[0] * unit / total
        if rule.kind != "Threshold":
            return rule.decide(sums)
        mean, level = sums[0] * unit, self.rule.level if self.level is None else self.level
        return int(mean >= total * level if rule.above else mean <= total * level)
