"""Labels: the outcomes that people should have got, as tables and users write them."""

from feta.errors import DomainError, one_of
from feta.io.cell_text import parse_number
from feta.model import Model
from feta.rule import Argmax, OneVsRest, Outcome, Tolerance

_TRUE = {"1", "1.0", "true"}
_FALSE = {"0", "0.0", "false"}


def read_label(model: Model, label: object) -> Outcome:
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
