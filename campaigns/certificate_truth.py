"""The truth of a claim, by the definition of fairness: the oracles list and score counterparts."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import Any

from feta.io.canonical_json import dyadic_text
from feta.model import Model
from feta.rule import Argmax, Rule, Tolerance
from feta.space.attribute import Categorical, Derived, Integer, Levels, Real, Value
from feta.space.feature_space import FeatureSpace
from feta.space.limits import Number
from feta.space.vote_weights import VoteWeights
from tests import oracle
from tests.forest_cases import ForestCase
from tests.forest_oracle import Answers, Record, all_records, row_of

Claim = dict[str, Any]


@dataclass(frozen=True)
class Truth:
    """A model by its definition."""

    space: FeatureSpace
    rule: Rule
    weights: VoteWeights | None
    score: Callable[[Record], list[Fraction]]
    denominator: int = 1

    @classmethod
    def of_network(cls, model: Model, weights: VoteWeights | None) -> "Truth":
        """Return the truth about a network."""

        def score(record: Record) -> list[Fraction]:
            return oracle.scores(model, row_of(model.space, record))

        return cls(model.space, model.rule, weights, score)

    @classmethod
    def of_forest(cls, case: ForestCase) -> "Truth":
        """Return the truth about a tree ensemble."""

        def score(record: Record) -> list[Fraction]:
            answers = Answers(case.space, case.ensemble, case.rule, record)
            return answers.seen(case.ensemble.scores(record))

        return cls(case.space, case.rule, case.weights, score, case.ensemble.denominator)

    @property
    def sizes(self) -> list[int]:
        """The number of values of each sensitive attribute."""
        return [len(oracle.values_of(attribute)) for attribute in self.space.sensitive]

    def holds(self, claim: Claim) -> bool:
        """Return whether everything that a claim states is true."""
        try:
            return self._holds(claim)
        except (LookupError, TypeError, ValueError, AssertionError, StopIteration):
            return False

    def _holds(self, claim: Claim) -> bool:
        record = self._record(claim["person"])
        records = all_records(self.space, record)
        scores = [self.score(other) for other in records]
        own = scores[records.index(self._same(records, record))]
        regression = isinstance(self.rule, Tolerance)
        decision = _rounded(own[0]) if regression else oracle.decision(self.rule, own)
        if claim["decision"] not in (None, decision):
            return False
        if claim["fair_decision"] not in (None, self._fair_decision(scores)):
            return False
        if claim["verdict"] == "unfair":
            return self._pair_holds(claim["pair"], records, record)
        if claim["verdict"] == "fair":
            return self._is_fair(scores) and self._covers(claim["proof"], scores)
        return True

    def _record(self, cells: list[Any]) -> Record:
        raw = [a for a in self.space.attributes if not isinstance(a, Derived)]
        values = {
            attribute.name: _value(attribute, cell)
            for attribute, cell in zip(raw, cells, strict=True)
        }
        checked = dict(values)
        for attribute in raw:  # the format accepts any number beyond the levels
            number = values[attribute.name]
            if isinstance(attribute, Levels) and not (attribute.sensitive or attribute.strict):
                assert number is None or isinstance(number, float)
                inside = number is None or attribute.numbers[0] <= number <= attribute.numbers[-1]
                checked[attribute.name] = number if inside else attribute.numbers[0]
        self.space.encode([checked], limits="open")  # raises for values outside the domain
        return values

    def _same(self, records: list[Record], record: Record) -> Record:
        return next(other for other in records if record.items() <= other.items())

    def _fair_decision(self, scores: list[list[Fraction]]) -> int | str:
        votes = [oracle.votes_of(number, self.weights) for number in range(len(scores))]
        if isinstance(self.rule, Tolerance):
            ranked = sorted(s[0] for s, n in zip(scores, votes, strict=True) for _ in range(n))
            return _rounded(ranked[(len(ranked) - 1) // 2])
        counts = [0] * self.rule.n_classes
        for score, number in zip(scores, votes, strict=True):
            counts[oracle.decision(self.rule, score)] += number
        if isinstance(self.rule, Argmax):
            return counts.index(max(counts))
        return int(counts[1] >= counts[0])

    def _is_fair(self, scores: list[list[Fraction]]) -> bool:
        if isinstance(self.rule, Tolerance):
            values = [score[0] for score in scores]
            return max(values) - min(values) <= Fraction(self.rule.epsilon)
        return len({oracle.decision(self.rule, score) for score in scores}) == 1

    def _pair_holds(self, pair: Any, records: list[Record], record: Record) -> bool:
        sensitive = [a for a in self.space.attributes if not isinstance(a, Derived) and a.sensitive]
        ends = []
        for cells in pair["people"]:
            values = {a.name: _value(a, c) for a, c in zip(sensitive, cells, strict=True)}
            ends.append(self._same(records, record | values))
        first, second = (self.score(end) for end in ends)
        stated = [[_text(y * self.denominator) for y in end] for end in (first, second)]
        if (
            len(pair["people"]) != 2
            or pair["scores"] != stated
            or set(pair) != {"people", "scores"}
        ):
            return False
        if isinstance(self.rule, Tolerance):
            return abs(first[0] - second[0]) > Fraction(self.rule.epsilon)
        decisions = {oracle.decision(self.rule, end) for end in (first, second)}
        return len(decisions) == 2 and ends[0] == self._same(records, record)

    def _covers(self, proof: Any, scores: list[list[Fraction]]) -> bool:
        if set(proof) == {"counterparts"}:
            return type(proof["counterparts"]) is int and proof["counterparts"] == len(scores)
        if isinstance(self.rule, Tolerance):
            center, half = _fraction(proof["center"]), Fraction(self.rule.epsilon) / 2
            if any(abs(score[0] - center) > half for score in scores):
                return False
        stack, n_covered = [[(0, size - 1) for size in self.sizes]], 0
        for node in proof["tree"]:
            box = stack.pop()
            if node == 0:
                n_covered += prod(high - low + 1 for low, high in box)
                continue
            axis, at = node
            low, high = box[axis]
            assert low <= at < high
            assert axis >= 0
            stack.append([*box[:axis], (at + 1, high), *box[axis + 1 :]])
            stack.append([*box[:axis], (low, at), *box[axis + 1 :]])
        return not stack and n_covered == len(scores)


def _value(attribute: Categorical | Number, cell: Any) -> Value:
    if isinstance(attribute, Categorical):
        assert type(cell) is int
        assert cell >= 0
        return attribute.all_values[cell]
    if cell is None:
        assert attribute.missing
        return None
    number = _fraction(cell)
    if isinstance(attribute, Integer):
        assert number.denominator == 1
        return int(number)
    assert isinstance(attribute, Levels | Real)
    assert Fraction(float(number)) == number
    return float(number)


def _fraction(text: str) -> Fraction:
    if text == "0":
        return Fraction(0)
    mantissa, exponent = text.split("p")
    return int(mantissa, 16) * Fraction(2) ** int(exponent)


def _text(number: Fraction) -> str:
    return dyadic_text(number.numerator, 1 - number.denominator.bit_length())


def _rounded(number: Fraction) -> str:
    return _text(Fraction(float(number)))
