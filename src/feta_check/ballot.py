"""Graded ballots: the mean grade of all counterparts decides."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from fractions import Fraction

from feta_check.model_file import ModelFile
from feta_check.reading import exact_text, expect

# The grade of probability 1.
GRADE = 2**20


class Ballot:
    """Thresholds of scores, ascending, and the grades of the cells between them."""

    def __init__(self, file: ModelFile) -> None:
        self.thresholds = [Fraction(number) for number in file.array("votes.thresholds", 1)]
        self.grades = file.array("votes.grades", 1)
        valid = len(self.grades) == len(self.thresholds) + 1
        valid &= self.thresholds == sorted(self.thresholds)
        valid &= all(type(grade) is int for grade in self.grades)
        expect(valid, "the model has an invalid ballot")
        self.json = [[exact_text(number) for number in self.thresholds], self.grades]

    def decide(
        self,
        votes: Iterable[tuple[int, Sequence[int]]],
        unit: Fraction,
        level: Fraction,
        *,
        above: bool,
    ) -> int:
        """Return the decision: votes are pairs of a number of votes and scores."""
        cuts = [threshold / unit for threshold in self.thresholds]
        grades, total = 0, 0
        for count, scores in votes:
            total += count
            grades += count * self.grades[bisect_right(cuts, scores[0])]
        wanted = level * GRADE * total
        return int(grades >= wanted if above else grades <= wanted)
