"""The questions of `feta init` in a terminal: columns, the favorable outcome, and consent."""

import re
import sys
from collections.abc import Callable, Collection, Sequence
from difflib import get_close_matches

import typer
from rich.console import Console
from rich.text import Text

from feta.cli.init_decision import StatedDecision
from feta.io.sanitize import listed, plain
from feta.io.schema_file import Decision

# Words in the names of columns that laws on equal treatment often protect.
SENSITIVE_WORDS = re.compile(
    "ages?|birth|birthday|born|citizen|citizenship|dob|disability|disabled|ethnic|ethnicity|female|"
    "foreign|foreigner|gender|immigrant|indigenous|male|marital|marriage|married|maternity|"
    "nationality|origin|orientation|pregnancy|pregnant|race|racial|religion|religious|sex|sexual"
)

# Words that say so only together: "personal_status", but not "status of account".
SENSITIVE_PAIRS = (
    ("personal", "status"),
    ("civil", "status"),
    ("family", "status"),
    ("native", "country"),
    ("skin", "color"),
)

# Words in the names of columns that identify people or hold the correct decision.
OTHER_WORDS = re.compile("id|identifier|key|uuid|label|target|outcome|decision|approved|y")

Ask = Callable[[str, str], str]


def is_conversation() -> bool:
    """Return whether a person can answer questions."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def words_of(name: str) -> set[str]:
    """Return the words in the name of a column."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    return {word.lower() for word in re.findall(r"[A-Za-z]+", spaced)}


def suggest_sensitive(names: Sequence[str]) -> list[str]:
    """Return the columns whose names say that they are sensitive."""
    return [name for name in names if _is_sensitive(words_of(name))]


def _is_sensitive(words: set[str]) -> bool:
    return any(map(SENSITIVE_WORDS.fullmatch, words)) or any(
        words.issuperset(pair) for pair in SENSITIVE_PAIRS
    )


def suggest_other(names: Sequence[str]) -> list[str]:
    """Return the columns that are probably identifiers or labels."""
    return [name for name in names if any(map(OTHER_WORDS.fullmatch, words_of(name)))]


def prompt(question: str, default: str) -> str:
    """Ask a question on stderr; Enter accepts the default."""
    shown = bool(default)
    return str(typer.prompt(plain(question), default=default, show_default=shown, err=True)).strip()


def say(text: str, style: str = "") -> None:
    """Print a line of the conversation."""
    Console(stderr=True, soft_wrap=True).print(Text(plain(text), style=style))


def ask_columns(
    question: str,
    names: Sequence[str],
    suggested: Sequence[str],
    *,
    required: bool,
    ask: Ask = prompt,
) -> list[str]:
    """Ask for columns by name or number until all of them exist."""
    for number, name in enumerate(names, start=1):
        say(f"  {number:>3}  {name}" + ("   (suggested)" if name in suggested else ""))
    default = ",".join(suggested)
    while True:
        answer = ask(f"{question} (names or numbers, with commas)", default or "none")
        chosen, unknown = parse_columns(answer, names)
        if unknown:
            close = get_close_matches(unknown[0], names, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            say(f"There is no column {unknown[0]!r}{hint}", "yellow")
        elif required and not chosen:
            say("At least one column must be sensitive; Ctrl-C stops.", "yellow")
        else:
            return chosen


def parse_columns(answer: str, names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the columns that an answer names, and what names no column."""
    if answer in names:  # a name may contain a comma
        return [answer], []
    chosen: list[str] = []
    unknown = []
    for part in filter(None, (part.strip() for part in answer.split(","))):
        if part in names:
            chosen.append(part)
        elif part.isdecimal() and 0 < int(part) <= len(names):
            chosen.append(names[int(part) - 1])
        elif part != "none":
            unknown.append(part)
    return list(dict.fromkeys(chosen)), unknown


def ask_decision(decision: Decision, classes: Sequence[str], ask: Ask = prompt) -> StatedDecision:
    """Ask what the model cannot state about its decision."""
    if decision.classes:
        say(f"The model decides between {listed(decision.classes)}; none is favorable.")
        return StatedDecision()
    if decision.tolerance is not None:
        return StatedDecision(tolerance=_ask_number(ask))
    if classes:
        return StatedDecision(favorable=_ask_class(classes, ask))
    favorable = ask("Name of the favorable outcome", "favorable")
    unfavorable = ask("Name of the other outcome", "unfavorable")
    high = _ask_choice(f"Which scores mean {favorable!r}?", ["high", "low"], "high", ask)
    return StatedDecision(favorable, unfavorable, "above" if high == "high" else "below")


def _ask_class(classes: Sequence[str], ask: Ask) -> str:
    """Ask which class is favorable, without a default: a guess would be accepted by habit."""
    return _ask_choice("Which outcome is favorable for a person?", classes, "", ask)


def _ask_choice(question: str, choices: Sequence[str], default: str, ask: Ask) -> str:
    for number, name in enumerate(choices, start=1):
        say(f"  {number:>3}  {name}")
    while True:
        answer = ask(question, default)
        if answer in choices:
            return answer
        if answer.isdecimal() and 0 < int(answer) <= len(choices):
            return choices[int(answer) - 1]
        say(f"Not a choice: {answer!r}; expected one of {listed(choices)}", "yellow")


def _ask_number(ask: Ask) -> float:
    while True:
        answer = ask("By how much may the predictions for two counterparts differ?", "0.0")
        try:
            tolerance = float(answer)
        except ValueError:
            tolerance = -1.0
        if 0 <= tolerance < float("inf"):
            return tolerance
        say(f"Not a tolerance: {answer!r}; expected a number from 0", "yellow")


def confirm_doubts(doubts: Collection[str], ask: Ask = prompt) -> bool:
    """Show doubtful columns, and ask whether to write the schema; without doubts, do not ask."""
    if not doubts:
        return True
    say("Doubtful columns:")
    for doubt in doubts:
        say(f"  - {doubt}", "yellow")
    answer = _ask_choice("Write the schema anyway?", ["yes", "no"], "yes", ask)
    return answer == "yes"
