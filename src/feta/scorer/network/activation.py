"""Continuous piecewise-linear functions of one number, defined by their pieces.

Evaluation, error bounds, exact arithmetic and MILP encodings all follow from the pieces.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from feta.arrays import Array, Matrix, Vector, frozen
from feta.errors import NetworkError
from feta.rounding import FLOOR, Arithmetic
from feta.scorer.network.smooth.activation import Smooth
from feta.scorer.protocol import Enclosure

Pieces = NDArray[np.int8]


# Indices of pieces are int8.
MAX_PIECES = 100


@dataclass(frozen=True, eq=False)
class Activation:
    """A function that is slope·z + intercept on each piece between its breaks.

    Arrays are (pieces, width): one column per neuron, or one column for all of them. Piece i goes
    from break i − 1 (inclusive) to break i. Both sides agree at a break; this is checked exactly.
    """

    name: str
    breaks: Matrix  # (pieces − 1, width), ascending along the first axis
    slopes: Matrix  # (pieces, width)
    intercepts: Matrix  # (pieces, width)

    def __post_init__(self) -> None:
        for field in ("breaks", "slopes", "intercepts"):
            object.__setattr__(self, field, frozen(getattr(self, field)))
        arrays = (self.breaks, self.slopes, self.intercepts)
        if any(array.ndim != 2 for array in arrays):  # noqa: PLR2004 - pieces and neurons
            raise NetworkError(
                f"invalid arrays of activation {self.name!r}: got the shapes "
                f"{', '.join(str(array.shape) for array in arrays)}; expected (pieces, neurons)"
            )
        if not 0 < len(self.slopes) <= MAX_PIECES or self.slopes.shape != self.intercepts.shape:
            raise NetworkError(
                f"invalid pieces of activation {self.name!r}: got slopes {self.slopes.shape} and "
                f"intercepts {self.intercepts.shape}; expected 1 to {MAX_PIECES} slopes and as "
                "many intercepts"
            )
        if self.breaks.shape != (len(self.slopes) - 1, self.slopes.shape[1]):
            raise NetworkError(
                f"invalid breaks of activation {self.name!r}: got the shape {self.breaks.shape}; "
                f"expected {(len(self.slopes) - 1, self.slopes.shape[1])}"
            )
        if not all(np.isfinite(array).all() for array in arrays):
            raise NetworkError(
                f"invalid numbers of activation {self.name!r}: got NaN or infinity; expected "
                "finite numbers"
            )
        if (np.diff(self.breaks, axis=0) <= 0).any():
            raise NetworkError(
                f"invalid breaks of activation {self.name!r}: got {self.breaks.T.tolist()}; "
                "expected ascending breaks"
            )
        self._check_continuous()

    def _check_continuous(self) -> None:
        for piece, column in np.ndindex(self.breaks.shape):
            at = Fraction(float(self.breaks[piece, column]))
            left, right = (
                Fraction(float(self.slopes[side, column])) * at
                + Fraction(float(self.intercepts[side, column]))
                for side in (piece, piece + 1)
            )
            if left != right:
                raise NetworkError(
                    f"activation {self.name!r} is not continuous: got a jump at {float(at):g}; "
                    "expected equal values on both sides"
                )

    @property
    def numbers(self) -> dict[str, Array]:
        """The arrays that define it."""
        return {"breaks": self.breaks, "slopes": self.slopes, "intercepts": self.intercepts}

    @property
    def n_pieces(self) -> int:
        """The number of pieces."""
        return len(self.slopes)

    @property
    def width(self) -> int:
        """The number of neurons it is for; 1 fits any number."""
        return int(self.slopes.shape[1])

    @cached_property
    def steepest(self) -> Vector:
        """The largest absolute slope of each neuron: its Lipschitz constant."""
        return np.abs(self.slopes).max(axis=0)

    @cached_property
    def lift(self) -> Vector:
        """The largest absolute intercept of each neuron."""
        return np.abs(self.intercepts).max(axis=0)

    @cached_property
    def limits(self) -> tuple[Vector, Vector]:
        """The smallest and the largest value of each neuron; infinite where unbounded."""
        corners = self.slopes[:-1] * self.breaks + self.intercepts[:-1]
        outward = (-np.sign(self.slopes[0]), np.sign(self.slopes[-1]))
        flat = (self.intercepts[0], self.intercepts[-1])
        ends = [
            np.where(sign == 0, value, np.copysign(np.inf, sign))
            for sign, value in zip(outward, flat, strict=True)
        ]
        extremes = np.vstack([corners, *ends])
        return extremes.min(axis=0), extremes.max(axis=0)

    @cached_property
    def rounds(self) -> bool:
        """Whether floating-point evaluation rounds; ReLU, clips and |z| do not."""
        copies = np.isin(self.slopes, (-1.0, 0.0, 1.0)).all()
        shifts = (self.slopes != 0) & (self.intercepts != 0)
        return not copies or bool(shifts.any())

    @cached_property
    def is_relu(self) -> bool:
        """Whether it is max(0, z) for every neuron; its name does not matter."""
        return (
            self.n_pieces == 2  # noqa: PLR2004 - below and above 0
            and not self.breaks.any()
            and not self.slopes[0].any()
            and bool((self.slopes[1] == 1).all())
            and not self.intercepts.any()
        )

    def __call__(self, values: Matrix) -> Matrix:
        """Evaluate; NaN stays NaN."""
        if self.is_relu:  # the usual case, which is many times faster this way
            return np.asarray(np.maximum(values, 0.0))
        result = self.slopes[0] * values + self.intercepts[0]
        for at, slope, intercept in zip(
            self.breaks, self.slopes[1:], self.intercepts[1:], strict=True
        ):
            result = np.where(values >= at, slope * values + intercept, result)
        return np.asarray(result)

    def enclose(self, bounded: Enclosure, arithmetic: Arithmetic) -> Enclosure:
        """Bound the values of numbers with errors; the errors depend on absolute values only."""
        values = self(bounded.values)
        # |f(z) − f(z')| ≤ L·|z − z'|, because f is continuous.
        errors = bounded.errors
        if (self.steepest != 1.0).any():
            errors = errors * (self.steepest * (1 + 4 * arithmetic.unit))
        if self.rounds:
            radius = (self.steepest + FLOOR) * (np.abs(bounded.values) + bounded.errors)
            radius += self.lift
            errors = errors + arithmetic.gamma(1) * radius + 5 * arithmetic.tiny
        return Enclosure(values, errors)

    def pieces(self, values: Matrix, errors: Matrix) -> Pieces:
        """Return the piece of each value, or −1 where the error does not decide it."""
        pieces = np.zeros(values.shape, dtype=np.int8)
        decided = np.ones(values.shape, dtype=bool)
        for at in self.breaks:
            pieces += values >= at
            decided &= np.abs(values - at) > errors
        return np.where(decided, pieces, np.int8(-1))


def piecewise(name: str, breaks: ArrayLike, slopes: ArrayLike, intercepts: ArrayLike) -> Activation:
    """Return an activation that is the same for all neurons."""
    columns = [
        np.asarray(values, dtype=np.float64).reshape(-1, 1)
        for values in (breaks, slopes, intercepts)
    ]
    return Activation(name, *columns)


def identity() -> Activation:
    """Return the identity z."""
    return piecewise("identity", [], [1], [0])


def relu() -> Activation:
    """Return max(0, z)."""
    return piecewise("relu", [0], [0, 1], [0, 0])


def leaky_relu(slope: float = 0.01) -> Activation:
    """Return z where z ≥ 0, and slope·z below."""
    return piecewise("leaky_relu", [0], [slope, 1], [0, 0])


def prelu(slopes: ArrayLike) -> Activation:
    """Return a leaky ReLU with one slope per neuron."""
    below = np.atleast_1d(np.asarray(slopes, dtype=np.float64))
    zeros = np.zeros_like(below)
    return Activation(
        "prelu", zeros[None, :], np.stack([below, zeros + 1]), np.stack([zeros, zeros])
    )


def absolute() -> Activation:
    """Return |z|."""
    return piecewise("abs", [0], [-1, 1], [0, 0])


def clip(low: float = -1.0, high: float = 1.0) -> Activation:
    """Return z clipped to [low, high]; either limit may be infinite."""
    if not low < high:
        raise NetworkError(
            f"invalid limits of a clip: got {low} and {high}; expected the first below the second"
        )
    pieces = [(low, 0.0, low)] * bool(np.isfinite(low)) + [(low, 1.0, 0.0)]
    pieces += [(high, 0.0, high)] * bool(np.isfinite(high))
    breaks = [limit for limit in (low, high) if np.isfinite(limit)]
    return piecewise(
        "clip", breaks, [slope for _, slope, _ in pieces], [start for *_, start in pieces]
    )


def relu6() -> Activation:
    """Return z clipped to [0, 6]."""
    return clip(0.0, 6.0)


@dataclass(frozen=True, slots=True)
class Scaled:
    """An activation of factor·z + shift; both are folded into the layer before it."""

    activation: Activation
    factor: Fraction
    shift: Fraction


def hardsigmoid(factor: Fraction = Fraction(1, 6), shift: Fraction = Fraction(1, 2)) -> Scaled:
    """Return z / 6 + 1 / 2 clipped to [0, 1].

    1/6 is not a float64, so pieces with this slope would not be continuous. A clip of a scaled
    layer is continuous and rounded once.
    """
    return Scaled(clip(0.0, 1.0), factor, shift)


@dataclass(frozen=True, slots=True)
class Maxout:
    """The largest of each group of neighbors; `NetworkBuilder` encodes it exactly with ReLU."""

    pool: int = 2


Step = Activation | Smooth | Scaled | Maxout

NAMED: dict[str, Callable[[], Step]] = {
    "abs": absolute,
    "hardsigmoid": hardsigmoid,
    "hardtanh": clip,
    "identity": identity,
    "leaky_relu": leaky_relu,
    "maxout": Maxout,
    "relu": relu,
    "relu6": relu6,
}

# Functions that are neither piecewise-linear nor enclosed, and what to use instead.
SMOOTH = {"erf": "tanh", "exp": "softplus", "log": "softplus", "softmax": "relu"}


def refuse_smooth(name: str, where: str) -> NetworkError:
    """Return the error for an activation that is not piecewise-linear, with a replacement."""
    instead = SMOOTH.get(name.lower(), "relu")
    return NetworkError(
        f"{where} is not piecewise-linear, nor an activation that FETA encloses; retrain with "
        f"{instead!r} in its place"
    )
