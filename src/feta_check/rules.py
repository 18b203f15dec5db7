"""Rules: from scores to decisions, and what a majority, a median or a mean of scores decides."""

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any

from feta_check.model_file import ModelFile
from feta_check.reading import Refuted, Unchecked, Unreadable, canonical, exact
from feta_check.segments import Number, Segment

FIELDS = {
    "Threshold": {"value", "favors", "equality"},
    "Argmax": {"classes"},
    "OneVsRest": {"classes", "chosen"},
    "Tolerance": {"epsilon"},
}
GRADE = 2**20


class Rule:
    """A rule; scores are compared in the unit that `scaled` sets."""

    def __init__(self, entry: Any) -> None:
        self.kind = entry.get("kind") if type(entry) is dict else None
        if self.kind not in FIELDS:
            raise Unchecked(f"not checkable by this program: the rule {self.kind!r}")
        if entry.keys() != FIELDS[self.kind] | {"kind"}:
            raise Unreadable("the rule has unknown or missing fields")
        level = entry.get("value", entry.get("epsilon", 0))
        self.level = Fraction(level) if type(level) is int else exact(level)
        self.above, self.ties = entry.get("favors") == "above", entry.get("equality") == "favorable"
        classes = entry.get("classes", [])
        valid = (
            (self.kind != "Threshold" or entry["favors"] in ("above", "below"))
            and (self.kind != "Threshold" or entry["equality"] in ("favorable", "unfavorable"))
            and (not classes or (type(classes) is list and len(classes) > 1))
            and (self.kind != "OneVsRest" or entry["chosen"] in classes)
            and self.level
            >= 0 * (self.kind == "Tolerance") + self.level * (self.kind != "Tolerance")
        )
        if not valid:
            raise Unreadable("the rule has invalid options")
        self.outputs = max(1, len(classes))
        self.chosen = classes.index(entry["chosen"]) if self.kind == "OneVsRest" else None
        self.regression = self.kind == "Tolerance"
        self.n_decisions = self.outputs if self.kind == "Argmax" else 2

    def scaled(self, unit: Fraction) -> "Scaled":
        """Return the rule for scores that are integers times a unit."""
        return Scaled(self, unit)


class Scaled:
    """A rule for the scores of one person."""

    def __init__(self, rule: Rule, unit: Fraction) -> None:
        self.rule, self.unit = rule, unit
        level = rule.level / unit
        self.level: Number = level.numerator if level.denominator == 1 else level

    def winner(self, scores: Sequence[Number]) -> int:
        """Return the decision of a threshold, or the index of the largest score."""
        if self.rule.kind != "Threshold":
            return scores.index(max(scores))
        if scores[0] == self.level:
            return int(self.rule.ties)
        return int((scores[0] > self.level) == self.rule.above)

    def decide(self, scores: Sequence[Number]) -> int:
        """Return the decision."""
        winner = self.winner(scores)
        return winner if self.rule.chosen is None else int(winner == self.rule.chosen)

    def check(self, segment: Segment, decision: int) -> None:
        """Raise unless all counterparts of a segment get a decision."""
        first, last = segment.ends
        decisions = self.decide(first), self.decide(last)
        if decisions == (decision, decision) and self.winner(first) != self.winner(last):
            # The scores at which one class wins are convex, those at which it does not are not.
            decisions = min(ends := [self.decide(y) for _, y in segment.points()]), max(ends)
        if decisions != (decision, decision):
            raise Refuted("a counterpart gets another decision")

    def is_bounded(
        self, minimum: Callable[[list[int]], Number], decision: int, center: Fraction | None
    ) -> bool:
        """Return whether bounds on linear functions of the scores prove a decision."""
        rule = self.rule
        if center is not None:
            middle, half = center / self.unit, Fraction(self.level) / 2
            return minimum([1]) >= middle - half and minimum([-1]) >= -(middle + half)
        if rule.kind == "Threshold":
            sign = 1 if (decision == 1) == rule.above else -1
            return self._beats(minimum([sign]) - sign * self.level, rule.ties == (decision == 1))
        chosen = decision if rule.chosen is None else rule.chosen
        others = [other for other in range(rule.outputs) if other != chosen]
        if rule.chosen is not None and decision == 0:
            pairs = [(other, chosen) for other in others]
            return any(self._wins(minimum, *pair) for pair in pairs)
        return all(self._wins(minimum, chosen, other) for other in others)

    def _wins(self, minimum: Callable[[list[int]], Number], winner: int, loser: int) -> bool:
        row = [0] * self.rule.outputs
        row[winner], row[loser] = 1, -1
        return self._beats(minimum(row), winner < loser)

    @staticmethod
    def _beats(margin: Number, wins_ties: bool) -> bool:
        return margin > 0 or (margin == 0 and wins_ties)


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
