"""Beyond: people outside the limits of columns that are not sensitive.

A model's proofs use its limits: the largest activations, the range of the kernel, error bounds. So such
a person is decided by the same network over wider limits, a model of its own for which everything is
checked and bounded again. The limits depend on nothing but the person's own numbers, rounded up to a
power of ten, so a few models serve many people and nobody's answer depends on who else is asked about.
Where the network's formula is not known to hold beyond the limits the person is refused, with a reason.
"""

from dataclasses import replace

import numpy as np

from feta.arrays import Counts, Matrix, Vector
from feta.errors import NetworkError, OutsideLimits
from feta.model import Model
from feta.rounding import LARGEST_ACTIVATION
from feta.scorer.network.error_bounds import largest_activations
from feta.scorer.network.network import Measured, Network
from feta.space.attribute import Attribute, Real
from feta.space.feature_space import FeatureSpace
from feta.space.limits import Number, limits_of

# Wider models that a model keeps; more ways of being outside are made again when they come.
MAX_KEPT = 64

# The columns outside, by name, with their wider limits.
Wider = tuple[tuple[str, float, float], ...]


def groups(model: Model, people: Matrix) -> list[tuple[Model, Counts]]:
    """Split people by the model that decides them: the model itself inside its limits, else a wider one.

    The rows must be readable (`space.check(..., limits="open")`).

    Raises
    ------
    OutsideLimits
        For the first person whom no model can decide; it names column, row and reason.
    """
    rows: dict[int, list[tuple[str, float, float]]] = {}
    for one, flags in model.space.open_limits.outside(people):
        column = model.space.columns_of(model.space.attribute(one.column)).start
        for row in np.flatnonzero(flags).tolist():
            wider = _wider_limits(model.space.attribute(one.column), float(people[row, column]))
            rows.setdefault(row, []).append((one.column, *wider))
    if not rows:
        return [(model, np.arange(len(people)))]
    chosen: dict[Wider, list[int]] = {}
    for row in range(len(people)):
        chosen.setdefault(tuple(rows.get(row, ())), []).append(row)
    return [
        (_widened(model, wider, people, members[0]), np.array(members, dtype=np.int64))
        for wider, members in chosen.items()
    ]


def models_for(model: Model, people: Matrix) -> list[Model]:
    """Return the model that decides each person."""
    parts = groups(model, people)
    found = {row: one for one, rows in parts for row in rows.tolist()}
    return [found[row] for row in range(len(people))]


def model_for(model: Model, person: Vector) -> Model:
    """Return the model that decides one person."""
    return groups(model, person[None, :])[0][0]


def _wider_limits(attribute: Attribute, value: float) -> tuple[float, float]:
    assert isinstance(attribute, Number)
    low, high = limits_of(attribute)
    if value > high:
        return low, 0.0 if value <= 0 else _power(value)
    return (0.0 if value >= 0 else -_power(-value)), high


def _power(value: float) -> float:
    """Round a number above 0 up to a power of ten, or to the largest number."""
    with np.errstate(over="ignore"):
        power = np.float64(10.0) ** np.ceil(np.log10(value))
        power = power if power >= value else power * 10.0
    return float(min(power, np.finfo(np.float64).max))


def _widened(model: Model, wider: Wider, people: Matrix, row: int) -> Model:
    """Make the model over wider limits, or refuse the person for whom it is needed."""
    if not wider:
        return model
    made = model.wider.get(wider)
    if made is not None:
        return made
    column, reason = _obstacle(model, wider)
    try:
        made = None if reason else _checked(_made(model, wider))
    except NetworkError as error:
        reason = f"the number is too large for this model: {error}"
    if made is None:
        raise refusal(model, people, row, column=column, reason=reason)
    if len(model.wider) >= MAX_KEPT:
        model.wider.clear()
    model.wider[wider] = made
    return made


def refusal(model: Model, people: Matrix, row: int, *, column: str, reason: str) -> OutsideLimits:
    """Refuse a person by column and reason."""
    attribute = model.space.attribute(column)
    assert isinstance(attribute, Number)
    got = float(people[row, model.space.columns_of(attribute).start])
    what = f"is outside the schema's limits: got {got:.12g}; expected {attribute.domain()}, because {reason}"
    return OutsideLimits.at(column, row, what)


def widest(model: Model, people: Matrix, row: int) -> str:
    """Name the column in which a person outside the limits has the largest number."""
    person = people[row : row + 1]
    sizes = {
        one.column: abs(
            float(person[0, model.space.columns_of(model.space.attribute(one.column)).start])
        )
        for one, _ in model.space.open_limits.outside(person)
    }
    return max(sizes, key=lambda name: sizes[name])


def _obstacle(model: Model, wider: Wider) -> tuple[str, str]:
    """Say which column may not leave its limits, and why; else the one that reaches farthest."""
    space, network = model.space, model.network
    for name, low, high in wider:
        column = space.columns_of(space.attribute(name)).start
        if any(table.column == column for table in network.first.tables):
            return name, "the model reads this column by a table of values"
        span = _span(network.measured, column)
        if network.measured is not None and span is None:
            return name, "the preprocessing of this column is known only within the limits"
        if max(abs(low), abs(high)) >= LARGEST_ACTIVATION:
            return name, "the number is too large for float64 arithmetic"
    return max(wider, key=lambda one: max(-one[1], one[2]))[0], ""


def _span(measured: Measured | None, column: int) -> tuple[float, float] | None:
    spans = () if measured is None else measured.spans
    return next(((low, high) for index, low, high in spans if index == column), None)


def _made(model: Model, wider: Wider) -> Model:
    limits = {name: (low, high) for name, low, high in wider}
    attributes = tuple(
        # Any number between the limits: what kind of number it is was checked when it was read.
        Real(one.name, *limits[one.name], missing=isinstance(one, Number) and one.missing)
        if one.name in limits
        else one
        for one in model.space.attributes
    )
    network = _stretched(model, wider)
    return replace(model, space=FeatureSpace(attributes), network=network, threshold=None)


def _stretched(model: Model, wider: Wider) -> Network:
    """Let the sizes of what preprocessing makes cover the wider limits, too.

    Over its span an affine step's number is at most its size, so at t spans it is at most
    size · (1 + 2·t), the terms that the source adds up included; and a slope measured over the span,
    with an error of at most twice that of a feature, is off by no more than 2·t times that.
    """
    network = model.network
    if network.measured is None:
        return network
    factor = _stretch(model, wider)
    first = replace(network.first, cancelled_magnitude=network.first.cancelled_magnitude * factor)
    if not np.isfinite(first.cancelled_magnitude).all():
        raise NetworkError("the preprocessing's numbers could overflow")
    largest = network.measured.largest * factor
    if not largest < min(LARGEST_ACTIVATION, network.arithmetic.huge):
        raise NetworkError(f"the preprocessing's numbers could reach {largest:.3g}")
    return replace(network, first=first)


def _stretch(model: Model, wider: Wider) -> float:
    total = 1.0
    for name, low, high in wider:
        column = model.space.columns_of(model.space.attribute(name)).start
        span = _span(model.network.measured, column)
        assert span is not None  # _obstacle looked
        radius = max(high, span[1]) - min(low, span[0])
        total += 2 * radius / (span[1] - span[0])
    return total


def _checked(model: Model) -> Model:
    """Refuse numbers that the source's own arithmetic may not hold: its answers would be anything."""
    network, arithmetic = model.network, model.network.arithmetic
    sizes = [float(one.max()) for one in largest_activations(network, model.space.magnitudes)]
    sizes += [float(network.first.cancelled_magnitude.max()), float(model.space.magnitudes.max())]
    if not max(sizes) < arithmetic.huge:
        raise NetworkError(f"its own {arithmetic.name} arithmetic could overflow")
    return model
