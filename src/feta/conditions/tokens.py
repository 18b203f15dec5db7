"""Tokens of a condition, with their positions."""

import re
from dataclasses import dataclass
from typing import Literal, NoReturn

from feta.errors import SchemaError

Kind = Literal["number", "text", "name", "keyword", "symbol", "end"]

KEYWORDS = ("and", "or", "not", "in", "is", "missing", "true", "false")

# A longer condition is something else.
LONGEST = 20_000

PATTERN = re.compile(
    r"""\s*(?:
    (?P<number>(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
    |(?P<text>'(?:[^']|'')*'|"(?:[^"]|"")*")
    |`(?P<quoted>(?:[^`]|``)+)`
    |(?P<name>[^\W\d]\w*)
    |(?P<symbol>=>|<=|>=|==|!=|[<>()\[\],+\-*/])
    )""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Token:
    """A number, a text, a name, a keyword or a symbol, and its position, counted from 1."""

    kind: Kind
    text: str
    position: int

    @property
    def shown(self) -> str:
        """The token as messages show it."""
        return "the end" if self.kind == "end" else repr(self.text)


def tokens_of(condition: str) -> list[Token]:
    """Split a condition into tokens; the last one is the end."""
    if len(condition) > LONGEST:
        raise SchemaError(
            f"the condition is too long: got {len(condition):,} characters; expected at most "
            f"{LONGEST:,}"
        )
    tokens, start, stop = [], 0, len(condition.rstrip())
    while start < stop:
        match = PATTERN.match(condition, start)
        if match is None:
            _fail_at(condition, start)
        tokens.append(_token(condition, match))
        start = match.end()
    return [*tokens, Token("end", "", stop + 1)]


def _token(condition: str, match: re.Match[str]) -> Token:
    group = match.lastgroup
    assert group is not None  # every alternative is a group
    text, position = match[group], match.start(group) + 1
    match group:
        case "number":
            following = condition[match.end() : match.end() + 1]
            if following.isalnum() or following in ("_", "."):
                fail(condition, position, f"invalid number: got {text + following!r}")
            return Token("number", text, position)
        case "text":
            quote = text[0]
            return Token("text", text[1:-1].replace(quote * 2, quote), position)
        case "quoted":
            return Token("name", text.replace("``", "`"), position - 1)
        case "name":
            return Token("keyword" if text in KEYWORDS else "name", text, position)
        case _:
            return Token("symbol", text, position)


def _fail_at(condition: str, start: int) -> NoReturn:
    """Raise for characters that start no token."""
    rest = condition[start:].lstrip()
    position = len(condition) - len(rest) + 1
    character = rest[0]
    hints = {
        "=": "expected == for equality, or => for an implication",
        "'": "expected a closing quote; write a quote within a text twice",
        '"': "expected a closing quote; write a quote within a text twice",
        "`": "expected a closing backtick",
        "&": "expected 'and'",
        "|": "expected 'or'",
        "!": "expected 'not' or !=",
    }
    hint = hints.get(character, "expected a column, a number, a text or an operator")
    fail(condition, position, f"got {character!r}; {hint}")


def fail(condition: str, position: int, problem: str) -> NoReturn:
    """Raise the error about one position of a condition."""
    raise SchemaError(f"invalid condition {condition!r}: at position {position}: {problem}")
