"""Models over wider limits, for people outside the limits of columns that are not sensitive.

The proofs of a model depend on its limits: largest activations, the range of the kernel, error
bounds. A person outside is therefore decided by the same network over wider limits, as a separate
model for which everything is checked and bounded anew. The wider limits depend only on the
person's numbers, rounded up to a power of ten. So a few models serve many people, and no result
depends on other people. Where the network's formula is not known to hold beyond the limits, the
person is rejected, with a reason.
"""

from dataclasses import replace

import numpy as np

from feta.arrays import Counts, Flags, Matrix, Vector
from feta.errors import NetworkError, OutsideLimits
from feta.model import Model
from feta.space.attribute import Attribute, Real
from feta.space.feature_space import FeatureSpace
from feta.space.limits import Number, limits_of

# Wider models that a model caches; when there are more, the cache is cleared.
MAX_KEPT = 64

# The columns outside, by name, with their wider limits.
Wider = tuple[tuple[str, float, float], ...]


def groups(model: Model, people: Matrix) -> list[tuple[Model, Counts]]:
    """Split people by the model that decides them: the model itself, or one over wider limits.

    The rows must be valid except for the limits (`space.check(..., limits="open")`).

    Raises
    ------
    OutsideLimits
        For the first person whom no model can decide; it names column, row and reason.
    """
    return [
        (_widened_model(model, wider, people, rows), rows)
        for wider, rows in _rows_by_limits(model, people).items()
    ]


def decidable(model: Model, people: Matrix) -> tuple[Flags, OutsideLimits | None]:
    """Flag the people whom a model can decide; also return the first reason why one cannot be."""
    flags, first = np.ones(len(people), dtype=bool), None
    for wider, rows in _rows_by_limits(model, people).items():
        try:
            _widened_model(model, wider, people, rows)
        except OutsideLimits as error:
            flags[rows] = False
            first = first or error
    return flags, first


def _rows_by_limits(model: Model, people: Matrix) -> dict[Wider, Counts]:
    """Return the rows of the people by the wider limits that they need; () for none."""
    limits_by_row: dict[int, list[tuple[str, float, float]]] = {}
    for limit, flags in model.space.open_limits.outside(people):
        attribute = model.space.attribute(limit.column)
        column = model.space.columns_of(attribute).start
        for row in np.flatnonzero(flags).tolist():
            wider_limits = _wider_limits(attribute, float(people[row, column]))
            limits_by_row.setdefault(row, []).append((limit.column, *wider_limits))
    if not limits_by_row:
        return {(): np.arange(len(people))}
    rows_by_limits: dict[Wider, list[int]] = {}
    for row in range(len(people)):
        rows_by_limits.setdefault(tuple(limits_by_row.get(row, ())), []).append(row)
    return {wider: np.array(rows, dtype=np.int64) for wider, rows in rows_by_limits.items()}


def models_for(model: Model, people: Matrix) -> list[Model]:
    """Return the model that decides each person."""
    parts = groups(model, people)
    by_row = {row: part_model for part_model, rows in parts for row in rows.tolist()}
    return [by_row[row] for row in range(len(people))]


def model_for(model: Model, person: Vector) -> Model:
    """Return the model that decides one person."""
    return groups(model, person[None, :])[0][0]


def refusal(model: Model, people: Matrix, row: int, *, column: str, reason: str) -> OutsideLimits:
    """Return the error that rejects a person, with column and reason."""
    attribute = model.space.attribute(column)
    assert isinstance(attribute, Number)
    value = float(people[row, model.space.columns_of(attribute).start])
    what = (
        f"is outside the schema's limits: got {value:.12g}; expected {attribute.domain()}, "
        f"because {reason}"
    )
    return OutsideLimits.at(column, row, what)


def widest(model: Model, people: Matrix, row: int) -> str:
    """Return the column with the largest absolute value among those outside their limits."""
    person = people[row : row + 1]
    sizes = {
        limit.column: abs(
            float(person[0, model.space.columns_of(model.space.attribute(limit.column)).start])
        )
        for limit, _ in model.space.open_limits.outside(person)
    }
    return max(sizes, key=lambda name: sizes[name])


def _wider_limits(attribute: Attribute, value: float) -> tuple[float, float]:
    assert isinstance(attribute, Number)
    low, high = limits_of(attribute)
    if value > high:
        return low, 0.0 if value <= 0 else _round_up_to_power_of_ten(value)
    return (0.0 if value >= 0 else -_round_up_to_power_of_ten(-value)), high


def _round_up_to_power_of_ten(value: float) -> float:
    """Round a positive number up to a power of ten, or to the largest float64."""
    with np.errstate(over="ignore"):
        power = np.float64(10.0) ** np.ceil(np.log10(value))
        power = power if power >= value else power * 10.0
    return float(min(power, np.finfo(np.float64).max))


def _widened_model(model: Model, wider: Wider, people: Matrix, rows: Counts) -> Model:
    """Return the model over wider limits, or reject the first person for whom it is needed."""
    if not wider:
        return model
    widened = model.wider.get(wider)
    if widened is not None:
        return widened
    column, reason = _find_obstacle(model, wider)
    try:
        widened = None if reason else _widen(model, wider)
    except NetworkError as error:
        reason = f"the number is too large for this model: {error}"
    if widened is None:
        raise refusal(model, people, int(rows[0]), column=column, reason=reason)
    if len(model.wider) >= MAX_KEPT:
        model.wider.clear()
    model.wider[wider] = widened
    return widened


def _find_obstacle(model: Model, wider: Wider) -> tuple[str, str]:
    """Return a column that must not leave its limits, and the reason.

    If there is none, return the column with the largest limit, and no reason.
    """
    for name, low, high in wider:
        reason = model.relation.obstacle(name)
        reason = reason or model.scorer.obstacle(_column(model, name), low, high)
        if reason:
            return name, reason
    return max(wider, key=lambda limits: max(-limits[1], limits[2]))[0], ""


def _column(model: Model, name: str) -> int:
    return model.space.columns_of(model.space.attribute(name)).start


def _widen(model: Model, wider: Wider) -> Model:
    limits = {name: (low, high) for name, low, high in wider}
    attributes = tuple(
        # Any number between the limits is allowed: its kind was checked when it was read.
        Real(
            attribute.name,
            *limits[attribute.name],
            missing=isinstance(attribute, Number) and attribute.missing,
        )
        if attribute.name in limits
        else attribute
        for attribute in model.space.attributes
    )
    space = FeatureSpace(attributes)
    by_column = {_column(model, name): ends for name, ends in limits.items()}
    scorer = model.scorer.widened(by_column, space.magnitudes)
    return replace(model, space=space, scorer=scorer, threshold=None)
