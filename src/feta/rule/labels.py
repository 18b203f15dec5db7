"""Labels: the outcomes that people should get, as tables and users write them."""

from feta.errors import DomainError, unknown_choice

_TRUE = {"1", "1.0", "true"}
_FALSE = {"0", "0.0", "false"}

# Maximum characters of a label in a message.
MAX_CHARACTERS = 80


def parse_side(label: object, names: tuple[str, ...]) -> bool:
    """Parse one of two decisions: their names, or 1 and 0."""
    unfavorable, favorable = names
    text = str(label).lower()
    lower_names = (unfavorable.lower(), favorable.lower())
    if text in lower_names and lower_names[0] != lower_names[1]:
        return text == lower_names[1]
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    raise DomainError(
        f"got {_shortened(repr(label))}; expected {favorable!r}, {unfavorable!r}, 1 or 0"
    )


def parse_class(label: object, classes: tuple[str, ...]) -> str:
    """Parse the name of a class."""
    name = str(label)
    if name not in classes:
        raise DomainError(unknown_choice(_shortened(name), classes))
    return name


def parse_score(label: object) -> float:
    """Parse a finite number; 1_000 and digits of other scripts are texts."""
    text = isinstance(label, str) and ("_" in label or not label.isascii())
    try:
        value = float("nan") if text else float(label)  # type: ignore[arg-type]  # others raise
    except (OverflowError, TypeError, ValueError):
        value = float("nan")
    if not abs(value) < float("inf"):
        raise DomainError(f"got {_shortened(repr(label))}; expected a finite number")
    return value


def _shortened(text: str) -> str:
    """Shorten a cell to fit on one line of a message."""
    half = MAX_CHARACTERS // 2
    return text if len(text) <= MAX_CHARACTERS else f"{text[:half]} … {text[-half:]}"
