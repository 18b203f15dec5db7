"""Rules: from scores to decisions."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from feta_check.reading import Refuted, Unchecked, Unreadable, exact
from feta_check.segments import Number, Segment

FIELDS = {
    "Threshold": {"value", "favors", "equality"},
    "Argmax": {"classes"},
    "OneVsRest": {"classes", "chosen"},
    "Tolerance": {"epsilon"},
}


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
