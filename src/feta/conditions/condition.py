"""Conditions as values: comparisons of numbers, categories, missing cells, and how they combine."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, assert_never

from feta.space.attribute import Value

Operator = Literal["<", "<=", "==", "!=", ">=", ">"]


@dataclass(frozen=True, slots=True)
class Linear:
    """A sum of columns with coefficients, and a constant; all of it exact."""

    terms: tuple[tuple[str, Fraction], ...]  # by name, none of them 0
    constant: Fraction = Fraction(0)

    @classmethod
    def of(cls, coefficients: dict[str, Fraction], constant: Fraction) -> "Linear":
        """Return the sum, with its terms in order."""
        return cls(tuple(sorted((n, c) for n, c in coefficients.items() if c)), constant)

    def plus(self, other: "Linear", sign: int = 1) -> "Linear":
        """Return the sum, or for the sign −1 the difference, of two sums."""
        coefficients = dict(self.terms)
        for name, coefficient in other.terms:
            coefficients[name] = coefficients.get(name, Fraction(0)) + sign * coefficient
        return Linear.of(coefficients, self.constant + sign * other.constant)

    def times(self, factor: Fraction) -> "Linear":
        """Return the sum times a number."""
        scaled = {name: coefficient * factor for name, coefficient in self.terms}
        return Linear.of(scaled, self.constant * factor)


@dataclass(frozen=True, slots=True)
class Compared:
    """A sum of columns compared with 0."""

    total: Linear
    operator: Operator


@dataclass(frozen=True, slots=True)
class Among:
    """A category with one of these values; None stands for no value."""

    column: str
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class IsMissing:
    """A cell without a value."""

    column: str


@dataclass(frozen=True, slots=True)
class Not:
    """The opposite of a condition."""

    part: "Condition"


@dataclass(frozen=True, slots=True)
class AllOf:
    """All conditions together."""

    parts: "tuple[Condition, ...]"


@dataclass(frozen=True, slots=True)
class AnyOf:
    """At least one of the conditions."""

    parts: "tuple[Condition, ...]"


@dataclass(frozen=True, slots=True)
class Implies:
    """If the first condition holds, so does the second."""

    premise: "Condition"
    conclusion: "Condition"


Condition = Compared | Among | IsMissing | Not | AllOf | AnyOf | Implies


def columns_of(condition: Condition) -> frozenset[str]:
    """Return the names of the columns that a condition reads."""
    return frozenset(_columns(condition))


def sooner(condition: Condition, names: Collection[str]) -> Condition:
    """Return the condition with the parts first that read these columns only.

    It means the same. If such a part decides, the others are not evaluated.
    """
    match condition:
        case Not(part=part):
            return Not(sooner(part, names))
        case AllOf(parts=parts):
            return AllOf(_sooner(parts, names))
        case AnyOf(parts=parts):
            return AnyOf(_sooner(parts, names))
        case Implies(premise=premise, conclusion=conclusion):
            return Implies(sooner(premise, names), sooner(conclusion, names))
        case _:
            return condition


def _sooner(parts: tuple[Condition, ...], names: Collection[str]) -> tuple[Condition, ...]:
    known = frozenset(names)
    ordered = sorted(parts, key=lambda part: not columns_of(part) <= known)
    return tuple(sooner(part, names) for part in ordered)


def _columns(condition: Condition) -> Iterator[str]:
    match condition:
        case Compared(total=total):
            yield from (name for name, _ in total.terms)
        case Among(column=column) | IsMissing(column=column):
            yield column
        case Not(part=part):
            yield from _columns(part)
        case AllOf(parts=parts) | AnyOf(parts=parts):
            for part in parts:
                yield from _columns(part)
        case Implies(premise=premise, conclusion=conclusion):
            yield from _columns(premise)
            yield from _columns(conclusion)
        case _:
            assert_never(condition)
