"""Rules: from scores to decisions."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from feta_check.reading import Number, checkable, exact, readable
from feta_check.segments import Segment

FIELDS = {
    "Threshold": {"value", "favors", "equality"},
    "Argmax": {"classes"},
    "OneVsRest": {"classes", "chosen"},
    "Tolerance": {"epsilon"},
}


@dataclass(frozen=True)
class Rule:
    """A rule, with its level in some unit of scores."""

    kind: str
    level: Number  # the threshold or the tolerance
    above: bool
    ties: bool  # whether a score equal to the threshold is favorable
    outputs: int
    chosen: int | None

    @classmethod
    def read(cls, entry: dict[str, Any]) -> "Rule":
        """Read the rule of a model."""
        kind = entry["kind"]
        checkable(kind in FIELDS, f"the rule {kind!r}")
        level, classes = entry.get("value", entry.get("epsilon", 0)), entry.get("classes", [])
        favors, equality = entry.get("favors", "above"), entry.get("equality", "favorable")
        number = Fraction(level) if type(level) is int else exact(level)
        valid = entry.keys() == FIELDS[kind] | {"kind"} and type(classes) is list
        valid &= favors in ("above", "below") and equality in ("favorable", "unfavorable")
        valid &= len(classes) != 1 and bool(classes) == (kind in ("Argmax", "OneVsRest"))
        readable(valid and (number >= 0 or kind == "Threshold"), "the model has an invalid rule")
        chosen = classes.index(entry["chosen"]) if kind == "OneVsRest" else None
        ties, outputs = equality == "favorable", max(1, len(classes))
        return cls(kind, number, favors == "above", ties, outputs, chosen)

    def scaled(self, unit: Fraction) -> "Rule":
        """Return the rule for scores that are integers times a unit."""
        level = self.level / unit
        return replace(self, level=level.numerator if level.denominator == 1 else level)

    def _winner(self, scores: Sequence[Number]) -> int:
        if self.kind != "Threshold":
            return scores.index(max(scores))
        if scores[0] == self.level:
            return int(self.ties)
        return int((scores[0] > self.level) == self.above)

    def decide(self, scores: Sequence[Number]) -> int:
        """Return the decision."""
        winner = self._winner(scores)
        return winner if self.chosen is None else int(winner == self.chosen)

    def decisions(self, segment: Segment) -> Iterator[tuple[int, Sequence[int]]]:
        """Yield decisions with the ids of all counterparts of a segment that get them."""
        first, last = segment.at(segment.offsets[0]), segment.at(segment.offsets[-1])
        if self._winner(first) == self._winner(last):  # the scores at which one wins are convex
            yield self.decide(first), segment.ids
            return
        for number, scores in segment.points():
            yield self.decide(scores), (number,)

    def is_bounded(self, minimum: Callable[[list[int]], Number], decision: int) -> bool:
        """Return whether bounds on linear functions of the scores prove a decision."""
        if self.kind == "Threshold":
            sign = 1 if (decision == 1) == self.above else -1
            return _beats(minimum([sign]) - sign * self.level, self.ties == (decision == 1))
        chosen = decision if self.chosen is None else self.chosen
        others = [other for other in range(self.outputs) if other != chosen]
        if self.chosen is not None and decision == 0:
            return any(self._beaten(minimum, other, chosen) for other in others)
        return all(self._beaten(minimum, chosen, other) for other in others)

    def _beaten(self, minimum: Callable[[list[int]], Number], winner: int, loser: int) -> bool:
        row = [(index == winner) - (index == loser) for index in range(self.outputs)]
        return _beats(minimum(row), winner < loser)


def _beats(margin: Number, wins_ties: bool) -> bool:
    return margin > 0 or (margin == 0 and wins_ties)
