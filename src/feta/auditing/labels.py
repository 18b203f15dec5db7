"""Labels: the outcomes that people should get, as tables and users write them."""

from feta.errors import DomainError, unknown_choice
from feta.io.cell_text import parse_number
from feta.model import Model
from feta.rule import Argmax, OneVsRest, Outcome, Tolerance

_TRUE = {"1", "1.0", "true"}
_FALSE = {"0", "0.0", "false"}

# Maximum characters of a label in a message.
MAX_CHARACTERS = 80


def read_label(model: Model, label: object) -> Outcome:
    """Parse the outcome that a person should get.

    Two decisions: their names, or 1 and 0. Several classes: their names. Regression: a number.

    Raises
    ------
    DomainError
        If the label is none of these. The message "got X; expected Y" lacks the place of the
        label, which the caller knows.
    """
    match model.rule:
        case Tolerance():
            return _parse_score(label)
        case Argmax(classes=classes):
            return classes.index(_parse_class(label, classes))
        case OneVsRest(classes=classes, chosen=chosen) if str(label) not in model.outcomes:
            return _parse_class(label, classes) == chosen
    unfavorable, favorable = model.outcomes
    text = str(label).lower()
    names = (unfavorable.lower(), favorable.lower())
    if text in names and names[0] != names[1]:
        return text == names[1]
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    raise DomainError(
        f"got {_shortened(repr(label))}; expected {favorable!r}, {unfavorable!r}, 1 or 0"
    )


def _parse_score(label: object) -> float:
    number = parse_number(label) if isinstance(label, str) else label
    try:
        value = float(number)  # type: ignore[arg-type]  # other types raise
    except (TypeError, ValueError):
        value = float("nan")
    if not abs(value) < float("inf"):
        raise DomainError(f"got {_shortened(repr(label))}; expected a finite number")
    return value


def _parse_class(label: object, classes: tuple[str, ...]) -> str:
    name = str(label)
    if name not in classes:
        raise DomainError(unknown_choice(_shortened(name), classes))
    return name


def _shortened(text: str) -> str:
    """Shorten a cell to fit on one line of a message."""
    half = MAX_CHARACTERS // 2
    return text if len(text) <= MAX_CHARACTERS else f"{text[:half]} … {text[-half:]}"
