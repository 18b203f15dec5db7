"""Means: the mean of all scores decides, or the mean of their grades on a ballot."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

from feta_check.model_file import ModelFile
from feta_check.reading import checkable, exact_text, readable
from feta_check.rules import Rule

# The grade of probability 1.
GRADE = 2**20

Counted = Iterable[tuple[int, Sequence[int]]]  # the votes of a counterpart, and its scores


class Means:
    """A ballot (thresholds of scores, and the grades of the cells between them), and a level."""

    def __init__(self, file: ModelFile, entry: dict[str, Any], rule: Rule) -> None:
        level, self.vote, self.rule = entry["level"], entry["vote"], rule
        self.level = None if level is None else Fraction(float.fromhex(level))
        self.level_text = None if self.level is None else exact_text(self.level)
        self.ballot: Any = None
        if entry["graded"]:
            self.thresholds = [Fraction(number) for number in file.array("votes.thresholds", 1)]
            self.grades = file.array("votes.grades", 1)
            valid = len(self.grades) == len(self.thresholds) + 1
            valid &= self.thresholds == sorted(self.thresholds)
            valid &= all(type(grade) is int for grade in self.grades)
            readable(valid, "the model has an invalid ballot")
            self.ballot = [[exact_text(number) for number in self.thresholds], self.grades]

    def decide(self, votes: Counted, rule: Rule, unit: Fraction) -> int | Fraction:
        """Return the decision; regression: the exact mean. Scores are integers times a unit."""
        if self.vote == "mean_score":
            return self._mean(votes, rule, unit)
        known = self.vote == "mean_probability" and self.ballot is not None
        checkable(known and rule.kind == "Threshold" and self.level is not None, "this vote")
        assert self.level is not None
        cuts = [threshold / unit for threshold in self.thresholds]
        grades, total = 0, 0
        for count, scores in votes:
            total += count
            grades += count * self.grades[bisect_right(cuts, scores[0])]
        wanted = self.level * GRADE * total
        return int(grades >= wanted if rule.above else grades <= wanted)

    def _mean(self, votes: Counted, rule: Rule, unit: Fraction) -> int | Fraction:
        sums, total = [0] * rule.outputs, 0
        for count, scores in votes:
            total += count
            sums = [a + count * y for a, y in zip(sums, scores, strict=True)]
        if rule.kind == "Tolerance":
            return sums[0] * unit / total
        if rule.kind != "Threshold":
            return rule.decide(sums)
        level = total * (self.rule.level if self.level is None else self.level)
        return int(sums[0] * unit >= level if rule.above else sums[0] * unit <= level)
