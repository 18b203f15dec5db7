"""Means: the mean of all scores decides, or the mean of their grades on a ballot."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any, Protocol

from feta_check.model_file import ModelFile
from feta_check.reading import Number, checkable, exact_text, readable

# The grade of probability 1.
GRADE = 2**20

Counted = Iterable[tuple[int, Sequence[Number]]]  # the votes of a counterpart, and its scores


class Rule(Protocol):
    """A rule, for scores that are integers times a unit."""

    kind: str
    unit: Fraction
    level: Number
    above: bool
    outputs: int

    def decide(self, scores: Sequence[Number]) -> int:
        """Return the decision."""


class Means:
    """A ballot (thresholds of scores, and the grades of the cells between them), and a level."""

    def __init__(self, file: ModelFile, entry: dict[str, Any]) -> None:
        level, self.vote = entry["level"], entry["vote"]
        self.level = None if level is None else Fraction(float.fromhex(level))
        self.level_text = None if self.level is None else exact_text(self.level)
        self.ballot: Any = None
        if entry["graded"]:
            self.thresholds = [Fraction(number) for number in file.vector("votes.thresholds")]
            self.grades = file.vector("votes.grades")
            valid = len(self.grades) == len(self.thresholds) + 1
            valid &= self.thresholds == sorted(self.thresholds)
            valid &= all(type(grade) is int for grade in self.grades)
            readable(valid, "the model has an invalid ballot")
            self.ballot = [[exact_text(number) for number in self.thresholds], self.grades]

    def decide(self, votes: Counted, rule: Rule) -> int | Fraction:
        """Return the decision; regression: the exact mean."""
        if self.vote == "mean_score":
            return self._mean(votes, rule)
        known = self.vote == "mean_probability" and self.ballot is not None
        checkable(known and rule.kind == "Threshold" and self.level is not None, "this vote")
        assert self.level is not None
        cuts = [threshold / rule.unit for threshold in self.thresholds]
        grades, total = 0, 0
        for count, scores in votes:
            total += count
            grades += count * self.grades[bisect_right(cuts, scores[0])]
        wanted = self.level * GRADE * total
        return int(grades >= wanted if rule.above else grades <= wanted)

    def _mean(self, votes: Counted, rule: Rule) -> int | Fraction:
        sums: list[Number] = [0] * rule.outputs
        total = 0
        for count, scores in votes:
            total += count
            sums = [a + count * y for a, y in zip(sums, scores, strict=True)]
        if rule.kind == "Tolerance":
            return sums[0] * rule.unit / total
        if rule.kind != "Threshold":
            return rule.decide(sums)
        level = total * (rule.level if self.level is None else self.level / rule.unit)
        return int(sums[0] >= level if rule.above else sums[0] <= level)
