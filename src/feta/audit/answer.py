"""Answer: what a person gets, whatever the rule: a decision, a class's number, or a score."""

from feta.arrays import Answers, Flags, Matrix
from feta.errors import DomainError, one_of
from feta.model import Model
from feta.predict.fair_predictor import FairPredictor
from feta.rule import Argmax, OneVsRest, Rule, Tolerance
from feta.space.table_file import parse_number
from feta.verdict.tally import Tally

# Two decisions: True is favorable. Several classes: the class's number. Regression: the score.
Answer = bool | int | float

_TRUE = {"1", "1.0", "true"}
_FALSE = {"0", "0.0", "false"}


def fair_answers(predictor: FairPredictor, people: Matrix) -> list[Answer | None]:
    """Ask a fair predictor; None where it could not settle a person in time."""
    rule = predictor.model.rule
    if isinstance(rule, Tolerance):
        spread = predictor.medians(people)
        return _where(spread.settled, spread.median)
    return majorities(rule, predictor.votes(people))


def majorities(rule: Rule, counts: Tally) -> list[Answer | None]:
    """Give what most counterparts get; None where that is not certain."""
    several = isinstance(rule, Argmax)
    return _where(counts.settled, counts.winner if several else counts.decision)


def _where(settled: Flags, answers: Answers) -> list[Answer | None]:
    pairs = zip(answers.tolist(), settled.tolist(), strict=True)
    return [answer if certain else None for answer, certain in pairs]


def in_words(model: Model, answer: Answer | None) -> str | float:
    """Call an answer by its name; a score stays a number, and no answer is an empty text."""
    if answer is None:
        return ""
    return float(answer) if isinstance(model.rule, Tolerance) else model.outcomes[int(answer)]


def read_label(model: Model, label: object) -> Answer:
    """Understand the answer that a person should get, as tables and users write it.

    Two decisions: their names, or 1 and 0. Several classes: their names. Regression: a number.
    """
    match model.rule:
        case Tolerance():
            return _number(label)
        case Argmax(classes=classes):
            return classes.index(_named(label, classes))
        case OneVsRest(classes=classes, chosen=chosen) if str(label) not in model.outcomes:
            return _named(label, classes) == chosen
    unfavorable, favorable = model.outcomes
    text = str(label).lower()
    names = (unfavorable.lower(), favorable.lower())
    if text in names and names[0] != names[1]:
        return text == names[1]
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    raise DomainError(f"must be {favorable!r}, {unfavorable!r}, 1 or 0, got {_short(label)}")


def _number(label: object) -> float:
    number = parse_number(label) if isinstance(label, str) else label
    try:
        value = float(number)  # type: ignore[arg-type]  # what has no float is refused
    except (TypeError, ValueError):
        value = float("nan")
    if not abs(value) < float("inf"):
        raise DomainError(f"must be a finite number, got {_short(label)}")
    return value


def _named(label: object, classes: tuple[str, ...]) -> str:
    name = str(label)
    if name not in classes:
        raise DomainError(f"must be {one_of(_short(name, quoted=False), classes)}")
    return name


def _short(label: object, *, quoted: bool = True) -> str:
    """Show a cell in a message: a line of it is enough."""
    text = repr(label) if quoted else str(label)
    return text if len(text) <= 80 else f"{text[:40]} … {text[-40:]}"  # noqa: PLR2004 - a line
