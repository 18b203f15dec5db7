"""Votes: what a majority, a median or a mean of all counterparts decides."""

from collections.abc import Iterable, Sequence
from fractions import Fraction

from feta_check.model_file import ModelFile
from feta_check.reading import Refuted, Unchecked, Unreadable, canonical
from feta_check.rules import Rule, Scaled
from feta_check.segments import Number, Segment

# The grade of probability 1 on a ballot.
GRADE = 2**20


class Votes:
    """How the counterparts of a person vote."""

    def __init__(self, file: ModelFile, rule: Rule, size: int) -> None:
        entry = file.description.get("votes")
        weighted = entry is not None and entry["weighted"]
        graded = entry is not None and entry["graded"]
        lists = [
            [file.tensor(f"votes.{name}", 1).numbers for name in names] if on else None
            for on, names in (
                (weighted, ("assignment_ids", "votes")),
                (graded, ("thresholds", "grades")),
            )
        ]
        self.rule, self.size = rule, size
        self.vote = "majority" if entry is None else entry["vote"]
        level = None if entry is None or entry["level"] is None else float.fromhex(entry["level"])
        self.level = None if level is None else Fraction(level)
        self.weights: dict[int, int] | None = None
        if lists[0] is not None:
            ids, votes = lists[0]
            self.weights = dict(zip(ids, votes, strict=True))
            inside = all(0 <= number < size for number in ids)
            if len(self.weights) < len(ids) or not inside or min(votes, default=0) < 1:
                raise Unreadable("the model has invalid vote weights")
        self.thresholds: list[Fraction] = []
        if lists[1] is not None:
            tensor = file.tensor("votes.thresholds", 1)
            unit = Fraction(1, 1 << -tensor.exponent)
            self.thresholds = [number * unit for number in tensor.numbers]
            self.grades = lists[1][1]
            if len(self.grades) != len(self.thresholds) + 1 or self.thresholds != sorted(
                self.thresholds
            ):
                raise Unreadable("the model has an invalid ballot")
        self.json = canonical(
            {
                "ballot": None if lists[1] is None else [
                    [exact_of(number) for number in self.thresholds], self.grades
                ],
                "level": None if self.level is None else exact_of(self.level),
                "vote": self.vote,
                "weights": lists[0],
            }
        )  # fmt: skip
        graded_threshold = rule.kind == "Threshold" and graded and self.level is not None
        known = self.vote in ("majority", "mean_score")
        self.checkable = known or (self.vote == "mean_probability" and graded_threshold)

    def of(self, ids: Sequence[int]) -> int:
        """Return the votes of these counterparts."""
        if self.weights is None:
            return len(ids)
        return sum(self.weights.get(number, 0) for number in ids)

    def decide(self, segments: Iterable[Segment], rule: Scaled) -> int | Fraction:
        """Return the fair decision; regression: the exact median or mean."""
        if not self.checkable:
            raise Unchecked("not checkable by this program: this vote")
        if self.vote == "mean_score":
            return self._mean(segments, rule)
        if self.vote == "mean_probability":
            return self._graded(segments, rule)
        if self.rule.regression:
            return self._median(segments, rule)
        counts = [0] * self.rule.n_decisions
        for segment in segments:
            first, last = map(rule.winner, segment.ends)
            if first == last:
                counts[rule.decide(segment.start)] += self.of(segment.ids)
            else:
                for number, scores in segment.points():
                    counts[rule.decide(scores)] += self.of((number,))
        if self.rule.kind == "Argmax":
            return counts.index(max(counts))
        return int(counts[1] >= counts[0])

    def _median(self, segments: Iterable[Segment], rule: Scaled) -> Fraction:
        ranked = sorted(
            (scores[0], self.of((number,)))
            for segment in segments
            for number, scores in segment.points()
        )
        rest = (sum(votes for _, votes in ranked) + 1) // 2
        for score, votes in ranked:
            rest -= votes
            if rest <= 0 and votes:
                return score * rule.unit
        raise Refuted("nobody votes")

    def _mean(self, segments: Iterable[Segment], rule: Scaled) -> int | Fraction:
        sums: list[Number] = [0] * self.rule.outputs
        total = 0
        for segment in segments:
            for number, scores in segment.points():
                votes = self.of((number,))
                total += votes
                sums = [a + votes * y for a, y in zip(sums, scores, strict=True)]
        if self.rule.regression:
            return sums[0] * rule.unit / total
        if self.rule.kind != "Threshold":
            return rule.decide(sums)
        level = total * (self.rule.level if self.level is None else self.level)
        mean = sums[0] * rule.unit
        return int(mean >= level if self.rule.above else mean <= level)

    def _graded(self, segments: Iterable[Segment], rule: Scaled) -> int:
        cuts = [threshold / rule.unit for threshold in self.thresholds]
        sum_, total = 0, 0
        for segment in segments:
            for number, scores in segment.points():
                votes = self.of((number,))
                total += votes
                sum_ += votes * self.grades[_cell(cuts, scores[0])]
        assert self.level is not None
        level = self.level * GRADE * total
        return int(sum_ >= level if self.rule.above else sum_ <= level)


def _cell(cuts: list[Fraction], score: Number) -> int:
    """Return the number of cuts that are at most the score."""
    low, high = 0, len(cuts)
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if cuts[middle] <= score else (low, middle)
    return low


def exact_of(number: Fraction) -> str:
    """Return the exact text of a number."""
    if not number:
        return "0"
    zeros = (number.numerator & -number.numerator).bit_length() - 1
    return f"{number.numerator >> zeros:x}p{zeros + 1 - number.denominator.bit_length()}"
