"""The classes of an estimator, compared with the names in [decision]."""

import math
from collections.abc import Sequence

from feta.errors import SchemaError
from feta.io.schema_file import Decision
from feta.io.toml_text import toml

# Boolean classes are equal to 0 and 1, also in the files of other libraries.
BOOLEANS = {"false": 0.0, "true": 1.0}


def class_index(name: str, classes: Sequence[str]) -> int | None:
    """Return the class that a name means, also in another case or with other blanks."""
    if name in classes:
        return classes.index(name)
    simple = [_simplified(label) for label in classes]
    # Classes that differ in case or blanks only must be named exactly.
    return simple.index(_simplified(name)) if simple.count(_simplified(name)) == 1 else None


def check_order(decision: Decision, classes: Sequence[str]) -> None:
    """Reject a list of classes in another order than the estimator's outputs."""
    indices = [class_index(name, classes) for name in decision.classes]
    moved = [own for own, index in enumerate(indices) if index not in (None, own)]
    # Numbers may be the user's own names: grades 1 to 3 of the classes 0 to 2.
    complete = sorted(index for index in indices if index is not None) == list(range(len(classes)))
    if moved and (complete or not _are_numbers(classes)):
        raise SchemaError(
            f"[decision]: the order of classes differs from the model's: "
            f"got {list(decision.classes)}; expected {list(classes)}; "
            f"write classes = {toml(list(classes))}"
        )


def check_outcomes(decision: Decision, classes: Sequence[str]) -> None:
    """Reject outcomes that contradict two classes, or do not state which class is favorable."""
    named = _named_side(decision, classes)
    if named is None:
        if decision.favors is None and not _are_numbers(classes):
            raise _unclear(decision, classes)
        return
    if (decision.favors or "above") != named:
        raise SchemaError(
            f"[decision]: high scores of the model mean its second class, {classes[1]!r}, so "
            f"{_outcome_that_is_a_class(decision, classes)} needs favors = {toml(named)}"
        )


def _named_side(decision: Decision, classes: Sequence[str]) -> str | None:
    """Return the side of the favorable class; None if no outcome is named after a class."""
    favorable, unfavorable = (
        class_index(name, classes) for name in (decision.favorable, decision.unfavorable)
    )
    if favorable is not None and favorable == unfavorable:
        raise SchemaError(
            "[decision]: both outcomes are the same class of the model: "
            f"got {_outcomes(decision)}; expected one of {classes[0]!r} and {classes[1]!r} each"
        )
    if favorable is None and unfavorable is None:
        return None
    second = favorable == 1 or unfavorable == 0
    return "above" if second else "below"


def _outcome_that_is_a_class(decision: Decision, classes: Sequence[str]) -> str:
    if class_index(decision.favorable, classes) is not None:
        return f"favorable = {toml(decision.favorable)}"
    return f"unfavorable = {toml(decision.unfavorable)}"


def _unclear(decision: Decision, classes: Sequence[str]) -> SchemaError:
    first, second = classes
    return SchemaError(
        f"[decision]: it is not clear which class is favorable: got {_outcomes(decision)} without "
        f"favors; expected favors, because the model's classes are {first!r} and {second!r}, and "
        f"high scores mean {second!r}; write one of these lines: "
        f'favors = "above" (the favorable class is {second!r}) or '
        f'favors = "below" (the favorable class is {first!r})'
    )


def _outcomes(decision: Decision) -> str:
    return f"favorable = {toml(decision.favorable)} and unfavorable = {toml(decision.unfavorable)}"


def _simplified(name: str) -> str | float:
    """Return a name without case and blanks, or its number."""
    text = "".join(name.split()).casefold()
    if text in BOOLEANS:
        return BOOLEANS[text]
    try:
        number = float(text)
    except ValueError:
        return text
    return number if math.isfinite(number) else text


def _are_numbers(classes: Sequence[str]) -> bool:
    return all(isinstance(_simplified(label), float) for label in classes)
