"""The parser of conditions, by recursive descent. Nothing is evaluated.

From the weakest to the strongest: `=>`, `or`, `and`, `not`, comparisons and `in`, `+ -`, `* /`.
Numbers are read as float64, as in a table; sums and products are exact. A comparison may be chained
(`18 <= age < 65`). Texts are quoted; a name with other characters is written between backticks.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NoReturn

from feta.conditions.condition import (
    AllOf,
    Among,
    AnyOf,
    Compared,
    Condition,
    Implies,
    IsMissing,
    Linear,
    Not,
    Operator,
)
from feta.conditions.tokens import Token, fail, tokens_of
from feta.conditions.values import known_value, quoted
from feta.errors import unknown_choice
from feta.space.attribute import OTHER, Attribute, Categorical, Derived, Value

COMPARISONS: dict[str, Operator] = {
    "<": "<", "<=": "<=", "==": "==", "!=": "!=", ">=": ">=", ">": ">",
}  # fmt: skip

MIRRORED: dict[Operator, Operator] = {
    "<": ">", "<=": ">=", "==": "==", "!=": "!=", ">=": "<=", ">": "<",
}  # fmt: skip

# Parentheses and `not` within each other.
DEEPEST = 50


@dataclass(frozen=True, slots=True)
class _Category:
    """A column with categories, and its values."""

    column: str
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class _Literal:
    """A text, true or false."""

    value: str | bool


_Operand = Linear | _Category | _Literal
_Node = Condition | _Operand

CONDITIONS = (Compared, Among, IsMissing, Not, AllOf, AnyOf, Implies)


def parse_condition(text: str, attributes: Sequence[Attribute]) -> Condition:
    """Read a condition on the columns of these attributes; raise `SchemaError` with the position.

    Examples
    --------
    >>> from feta import Categorical, Integer
    >>> columns = [Integer("age", 18, 90), Categorical("marital", ("married", "single"))]
    >>> parse_condition("age < 20 => marital == 'single'", columns).conclusion
    Among(column='marital', values=('single',))
    """
    parser = _Parser(text, attributes)
    condition = parser.condition(parser.implication())
    parser.end()
    return condition


def parse_linear(text: str, attributes: Sequence[Attribute]) -> Linear:
    """Read a sum of columns, without a comparison."""
    parser = _Parser(text, attributes)
    total = parser.number(parser.sum())
    parser.end()
    if not total.terms:
        fail(text, 1, "got only numbers; expected a column, or a sum of columns")
    return total


class _Parser:
    """The tokens of one condition, and the place that is read next."""

    def __init__(self, text: str, attributes: Sequence[Attribute]) -> None:
        self._text = text
        self._tokens = tokens_of(text)
        self._next = 0
        self._depth = 0
        self._start = self._tokens[0]  # of the last operand, for messages
        self._attributes = {attribute.name: attribute for attribute in attributes}

    def implication(self) -> _Node:
        left = self._disjunction()
        if not self._takes("=>"):
            return left
        premise = self.condition(left)
        self._deeper()
        conclusion = self.condition(self.implication())
        self._depth -= 1
        return Implies(premise, conclusion)

    def _disjunction(self) -> _Node:
        first = self._conjunction()
        if not self._sees("or"):
            return first
        parts = [self.condition(first)]
        while self._takes("or"):
            parts.append(self.condition(self._conjunction()))
        return AnyOf(tuple(parts))

    def _conjunction(self) -> _Node:
        first = self._negation()
        if not self._sees("and"):
            return first
        parts = [self.condition(first)]
        while self._takes("and"):
            parts.append(self.condition(self._negation()))
        return AllOf(tuple(parts))

    def _negation(self) -> _Node:
        if not self._takes("not"):
            return self._comparison()
        self._deeper()
        part = self.condition(self._negation())
        self._depth -= 1
        return Not(part)

    def _comparison(self) -> _Node:
        left = self.sum()
        if self._takes("is"):
            negated = self._takes("not")
            self._expect("missing")
            return _negated(self._missing(left), negated=negated)
        if self._sees("not", "in") or self._sees("in"):
            negated = self._takes("not")
            self._expect("in")
            return _negated(self._among(left), negated=negated)
        parts: list[Condition] = []
        while self._current.kind == "symbol" and self._current.text in COMPARISONS:
            token = self._take()
            right = self.sum()
            parts.append(self._compared(left, COMPARISONS[token.text], right, token))
            left = right
        if not parts:
            return left
        return parts[0] if len(parts) == 1 else AllOf(tuple(parts))

    def sum(self) -> _Node:
        """Read a sum of products; one operand alone may be anything."""
        total = self._product()
        while self._sees("+") or self._sees("-"):
            left, sign = self.number(total), 1 if self._take().text == "+" else -1
            total = left.plus(self.number(self._product()), sign)
        return total

    def _product(self) -> _Node:
        result = self._unary()
        while self._sees("*") or self._sees("/"):
            left, token = self.number(result), self._take()
            right = self.number(self._unary())
            result = self._multiplied(left, right, token)
        return result

    def _multiplied(self, left: Linear, right: Linear, token: Token) -> Linear:
        if token.text == "/":
            if right.terms:
                self._fail(token, "got a division by a column; expected a number")
            if not right.constant:
                self._fail(token, "got a division by 0")
            return left.times(1 / right.constant)
        if left.terms and right.terms:
            self._fail(token, "got a product of two columns; expected a number times a column")
        return right.times(left.constant) if right.terms else left.times(right.constant)

    def _unary(self) -> _Node:
        sign = 1
        while self._sees("-") or self._sees("+"):
            sign *= -1 if self._take().text == "-" else 1
            if not (self._sees("-") or self._sees("+")):
                return self.number(self._atom()).times(Fraction(sign))
        return self._atom()

    def _atom(self) -> _Node:
        token = self._start = self._take()
        match token.kind:
            case "number":
                return Linear((), self._number(token))
            case "text":
                return _Literal(token.text)
            case "name":
                return self._column(token)
            case "keyword" if token.text in ("true", "false"):
                return _Literal(token.text == "true")
            case "symbol" if token.text == "(":
                self._deeper()
                inside = self.implication()
                self._depth -= 1
                self._expect(")")
                self._start = token
                return inside
        return self._fail(token, f"got {token.shown}; expected a column, a number or a text")

    def _number(self, token: Token) -> Fraction:
        digits = token.text.replace("_", "")
        number = float(digits)
        if abs(number) > sys.float_info.max:
            self._fail(token, f"got {token.text}; expected a number within the range of float64")
        if digits.isdigit() and int(digits) != int(number):
            self._fail(token, f"got {token.text}, which float64 cannot hold; expected fewer digits")
        return Fraction(number)

    def _column(self, token: Token) -> _Operand:
        attribute = self._attributes.get(token.text)
        if attribute is None:
            names = list(self._attributes)
            quoted = next((n for n in names if not n.isidentifier() and token.text in n), None)
            hint = "" if quoted is None else f"; write `{quoted}` with backticks for that column"
            texts = [
                name
                for name, known in self._attributes.items()
                if isinstance(known, Categorical) and token.text in known.values
            ]
            if texts:
                hint = f"; {token.text!r} is a value of {texts[0]!r}: write it in quotes"
            self._fail(token, f"unknown column: {unknown_choice(token.text, names)}{hint}")
        match attribute:
            case Categorical(values=values, other=other):
                return _Category(token.text, (*values, OTHER) if other else values)
            case Derived(bands=bands):
                return _Category(token.text, tuple(label for label, _, _ in bands))
        return Linear.of({token.text: Fraction(1)}, Fraction(0))

    def _compared(self, left: _Node, operator: Operator, right: _Node, token: Token) -> Condition:
        if isinstance(right, _Category) and not isinstance(left, _Category):
            left, right = right, left
            if operator not in ("==", "!="):
                self._fail(token, _ordered(left.column, operator))
        if isinstance(left, _Category):
            if operator not in ("==", "!="):
                self._fail(token, _ordered(left.column, operator))
            among = Among(left.column, (self._value(left, right, token),))
            return _negated(among, negated=operator == "!=")
        if isinstance(left, _Literal) or isinstance(right, _Literal):
            literal, other = (left, right) if isinstance(left, _Literal) else (right, left)
            what = "a number" if isinstance(other, Linear) else "no column"
            self._fail(
                token,
                f"got {literal.value!r} compared with {what}; expected a column with categories"
                if isinstance(literal, _Literal)
                else "got a comparison without a column",
            )
        total = self.number(left).plus(self.number(right), -1)
        if not total.terms:
            self._fail(token, "got a comparison of numbers alone; expected a column")
        if total.terms[0][1] < 0:  # equal conditions in equal forms
            return Compared(total.times(Fraction(-1)), MIRRORED[operator])
        return Compared(total, operator)

    def _value(self, category: _Category, node: _Node, token: Token) -> Value:
        """Return the value of a category that an operand names; types must be equal."""
        match node:
            case _Literal(value=literal):
                value: Value = literal
            case Linear(terms=(), constant=constant) if constant.denominator == 1:
                value = int(constant)
            case _:
                self._fail(
                    token,
                    f"expected a value of {category.column!r}, such as "
                    f"{quoted(category.values[0])}",
                )
        known, problem = known_value(category.column, category.values, value)
        return self._fail(token, problem) if problem else known

    def _among(self, left: _Node) -> Condition:
        token = self._take()
        if token.text not in ("(", "[") or token.kind != "symbol":
            self._fail(token, f"got {token.shown}; expected a list such as ('a', 'b')")
        closing = ")" if token.text == "(" else "]"
        values: list[Value] = []
        numbers: list[Condition] = []
        while True:
            place = self._current
            node = self.sum()
            if isinstance(left, _Category):
                values.append(self._value(left, node, place))
            else:
                numbers.append(self._compared(left, "==", node, place))
            if not self._takes(","):
                break
            if self._sees(closing):
                break
        self._expect(closing)
        if isinstance(left, _Category):
            return Among(left.column, tuple(dict.fromkeys(values)))
        return numbers[0] if len(numbers) == 1 else AnyOf(tuple(numbers))

    def _missing(self, node: _Node) -> Condition:
        if isinstance(node, _Category):
            return IsMissing(node.column)
        alone = isinstance(node, Linear) and not node.constant and len(node.terms) == 1
        if not alone or node.terms[0][1] != 1:  # type: ignore[union-attr]  # it is Linear
            self._fail(self._start, "expected the name of one column before 'is'")
        return IsMissing(node.terms[0][0])  # type: ignore[union-attr]  # it is Linear

    def condition(self, node: _Node) -> Condition:
        """Return a node that must be a condition."""
        if isinstance(node, CONDITIONS):
            return node
        token = self._current
        match node:
            case _Category(column=column, values=values):
                what = f"the column {column!r} alone; write {column} == {quoted(values[0])}"
            case _Literal(value=value):
                what = f"{value!r} alone; expected a condition such as age >= 18"
            case _:
                what = "a number alone; expected a condition such as age >= 18"
        if token.kind != "end" and not (token.kind == "symbol" and token.text == ")"):
            what += f"; it is followed by {token.shown}"
        return self._fail(self._start, f"got {what}")

    def number(self, node: _Node) -> Linear:
        """Return a node that must be a number."""
        if isinstance(node, Linear):
            return node
        match node:
            case _Category(column=column):
                what = f"the column {column!r}, which has categories"
            case _Literal(value=value):
                what = f"{value!r}"
            case _:
                what = "a condition"
        return self._fail(self._start, f"got {what}; expected a number or a column with numbers")

    def end(self) -> None:
        """Raise unless everything was read."""
        if self._current.kind != "end":
            self._fail(self._current, f"got {self._current.shown}; expected 'and', 'or' or the end")

    @property
    def _current(self) -> Token:
        return self._tokens[self._next]

    def _take(self) -> Token:
        token = self._current
        self._next = min(self._next + 1, len(self._tokens) - 1)
        return token

    def _sees(self, *texts: str) -> bool:
        following = self._tokens[self._next : self._next + len(texts)]
        return [token.text for token in following] == list(texts) and all(
            token.kind in ("keyword", "symbol") for token in following
        )

    def _takes(self, text: str) -> bool:
        if not self._sees(text):
            return False
        self._take()
        return True

    def _expect(self, text: str) -> None:
        if not self._takes(text):
            self._fail(self._current, f"got {self._current.shown}; expected {text!r}")

    def _deeper(self) -> None:
        self._depth += 1
        if self._depth > DEEPEST:
            self._fail(self._current, f"got more than {DEEPEST} nested conditions")

    def _fail(self, token: Token, problem: str) -> NoReturn:
        fail(self._text, token.position, problem)


def _ordered(column: str, operator: Operator) -> str:
    return f"got {operator!r} for {column!r}, which has categories; expected ==, != or in"


def _negated(condition: Condition, *, negated: bool) -> Condition:
    return Not(condition) if negated else condition
