"""Labels of a function as the outcomes of a schema, by their names or by their order."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from feta.arrays import Array, Vector
from feta.errors import NetworkError, SchemaError
from feta.readers.callable.parse import label_name, to_floats
from feta.scorer.protocol import Side


@dataclass(frozen=True, slots=True)
class OutcomeLabels:
    """The two labels that a function returns, in order, and the side of the favorable one."""

    classes: tuple[object, object]
    favors: Side
    named: bool  # whether the schema names them


def labels_of(answers: Array, names: tuple[str, str], favors: str | None) -> OutcomeLabels | None:
    """Return the labels that answers are, the unfavorable one first; None if they are numbers.

    The names of the schema decide. Only True and False, or 1 and 0, need no names.
    """
    labels = answers.reshape(-1).tolist()
    found = {label_name(label) for label in labels}
    numbers = to_floats(answers.reshape(-1))
    texts = all(type(label) is not bool for label in labels) and bool(np.isnan(numbers).any())
    if texts or (found <= set(names) if answers.dtype.kind == "f" else found & set(names)):
        unfavorable, favorable = typed_labels(names, answers)
        _check_side(unfavorable, favorable, favors)
        return OutcomeLabels((unfavorable, favorable), "above", named=True)
    side: Side = "below" if favors == "below" else "above"
    if all(type(label) is bool for label in labels):
        return OutcomeLabels((False, True), side, named=False)
    if np.isin(numbers, (0.0, 1.0)).all():
        return OutcomeLabels((0, 1), side, named=False)
    whole = bool((numbers == np.floor(numbers)).all())
    if whole and len(found) <= 2:  # noqa: PLR2004 - two outcomes
        typed_labels(names, answers)  # raises: the schema must name them
    return None


def _check_side(unfavorable: object, favorable: object, favors: str | None) -> None:
    """Raise if the names of numbers and `favors` contradict each other."""
    if favors is None or isinstance(favorable, str) or isinstance(unfavorable, str):
        return
    low, high = float(unfavorable), float(favorable)  # type: ignore[arg-type]  # numbers
    if (high < low) != (favors == "below"):
        raise SchemaError(
            f'[decision] contradicts itself: got favorable = "{label_name(favorable)}" and '
            f'favors = "{favors}" for a function that returns these labels; expected one of '
            "them to say which is favorable; remove favors"
        )


def check_probabilities(numbers: Vector) -> None:
    """Raise unless all finite numbers are between 0 and 1."""
    finite = numbers[np.isfinite(numbers)]
    if ((finite < 0) | (finite > 1)).any():
        worst = float(finite[np.argmax(np.abs(finite - 0.5))])
        raise SchemaError(
            f"the function returns no probabilities: got {worst!r}; expected numbers from 0 "
            "to 1; write score = … in [decision], the number from which on a score is favorable"
        )


def typed_labels(names: Sequence[str], answers: Array) -> list[object]:
    """Return the names of the schema as the labels that the function returns.

    A schema has texts, where a function may return numbers or booleans.
    """
    labels = {label_name(label): label for label in answers.reshape(-1).tolist()}
    unknown = [label for label in labels if label not in names]
    if unknown and all(label not in names for label in labels):
        shown = " and ".join(repr(labels[name]) for name in unknown[:2])
        raise NetworkError(
            f"the function returns other labels: got {shown}; expected one of "
            f"{', '.join(map(repr, names))}; name them in [decision]"
        )
    kinds = {type(label) for name, label in labels.items() if name in names}
    kind = kinds.pop() if len(kinds) == 1 else str
    return [labels.get(name, _converted(name, kind)) for name in names]


def _converted(name: str, kind: type) -> object:
    """Return the label of a class that the sample does not contain."""
    if kind is bool:
        return name == "True"
    try:
        return kind(name)
    except (TypeError, ValueError):
        return name
