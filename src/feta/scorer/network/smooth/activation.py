"""Smooth functions of one number as activations: float64 enclosures, and facts for error bounds."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NoReturn

import numpy as np

from feta.arrays import Array, Flags, Matrix, Vector, frozen
from feta.errors import NetworkError, unknown_choice
from feta.rounding import FLOAT64, Arithmetic
from feta.scorer.network.smooth.table import table
from feta.scorer.protocol import Enclosure

# No known library has a larger error in these functions, relative to the size of their terms.
SOURCE_ULPS = 16

# torch replaces softplus by the identity where β·x > 20; they differ by e^-20 / β there.
SOFTPLUS_THRESHOLD = 20.0
SOFTPLUS_STEP = 2.1e-9

# The constants of SELU in the frameworks.
SELU_ALPHA = 1.6732632423543772
SELU_SCALE = 1.0507009873554805

UNIT = FLOAT64.unit
TINY = FLOAT64.tiny


@dataclass(frozen=True, slots=True)
class Facts:
    """What error bounds need to know about a function f."""

    steepest: float  # |f(x) − f(y)| ≤ steepest · |x − y|
    offset: float  # |f(0)|
    limits: tuple[float, float]  # of all values
    bounded_terms: bool = False  # no intermediate number is larger than 1
    positive_parameter: bool = False  # whether its parameter matters
    source_step: float = 0.0  # a known difference of a framework, in float64 too


INFINITE = float("inf")

FACTS: Mapping[str, Facts] = {
    "celu": Facts(1.0, 0.0, (-INFINITE, INFINITE), positive_parameter=True),
    "elu": Facts(1.0, 0.0, (-INFINITE, INFINITE), positive_parameter=True),
    "gelu": Facts(1.13, 0.0, (-0.17, INFINITE)),
    "gelu_tanh": Facts(1.13, 0.0, (-0.171, INFINITE)),
    "hardswish": Facts(1.5, 0.0, (-0.375, INFINITE)),
    "logsigmoid": Facts(1.0, 0.7, (-INFINITE, 0.0)),
    "mish": Facts(1.09, 0.0, (-0.31, INFINITE)),
    "selu": Facts(1.7582, 0.0, (-1.7582, INFINITE)),
    "sigmoid": Facts(0.25, 0.5, (0.0, 1.0), bounded_terms=True),
    "silu": Facts(1.1, 0.0, (-0.279, INFINITE)),
    "softplus": Facts(
        1.0, 0.7, (0.0, INFINITE), positive_parameter=True, source_step=SOFTPLUS_STEP
    ),
    "softsign": Facts(1.0, 0.0, (-1.0, 1.0), bounded_terms=True),
    "tanh": Facts(1.0, 0.0, (-1.0, 1.0), bounded_terms=True),
}


# Names in frameworks, in lower case without underscores.
NAMED_SMOOTH = {name.replace("_", ""): name for name in FACTS} | {
    "hardsilu": "hardswish",
    "logistic": "sigmoid",
    "swish": "silu",
}


@dataclass(frozen=True, eq=False)
class Smooth:
    """A smooth function of the neurons of a layer, the same for all of them.

    `parameter` is α of ELU and CELU, and β of softplus. With `on`, one number per neuron, it is
    applied where that is 1; neurons with 0 pass through unchanged.
    """

    name: str
    parameter: float = 1.0
    on: Vector | None = None

    def __post_init__(self) -> None:
        if self.name not in FACTS:
            raise NetworkError(f"unknown smooth activation: {unknown_choice(self.name, FACTS)}")
        if not (np.isfinite(self.parameter) and 2.0**-20 <= self.parameter <= 2.0**20):
            raise NetworkError(
                f"invalid parameter of the activation {self.name!r}: got {self.parameter!r}; "
                "expected a positive number from 2^-20 to 2^20"
            )
        if not self.facts.positive_parameter and self.parameter != 1.0:
            raise NetworkError(
                f"the activation {self.name!r} has no parameter: got {self.parameter!r}"
            )
        if self.on is not None:
            object.__setattr__(self, "on", frozen(self.on))
            if self.on.ndim != 1 or not len(self.on) or not np.isin(self.on, (0.0, 1.0)).all():
                raise NetworkError(
                    f"invalid neurons of the activation {self.name!r}: got {self.on.tolist()}; "
                    "expected 1 or 0 for each"
                )

    @property
    def facts(self) -> Facts:
        """What error bounds need to know."""
        return FACTS[self.name]

    @property
    def numbers(self) -> dict[str, Array]:
        """The name as bytes, the parameter, and the neurons if not all."""
        name = np.frombuffer(self.name.encode(), dtype=np.uint8)
        numbers: dict[str, Array] = {"function": name, "parameter": np.array([self.parameter])}
        return numbers if self.on is None else numbers | {"on": self.on}

    @property
    def width(self) -> int:
        """The number of neurons it is for; 1 fits any number."""
        return 1 if self.on is None else len(self.on)

    @cached_property
    def applies(self) -> Flags:
        """Whether it applies to a neuron, or the neuron passes through."""
        return np.ones(1, dtype=bool) if self.on is None else self.on == 1.0

    @cached_property
    def steepest(self) -> Vector:
        """A bound on the slope: its Lipschitz constant."""
        slope = self.facts.steepest
        slope = max(slope, self.parameter) if self.name == "elu" else slope
        return np.where(self.applies, slope, 1.0)

    @cached_property
    def lift(self) -> Vector:
        """A bound on the absolute value at 0."""
        return np.where(self.applies, self.facts.offset / min(self.parameter, 1.0), 0.0)

    @cached_property
    def limits(self) -> tuple[Vector, Vector]:
        """Bounds on all values; infinite where unbounded."""
        low, high = self.facts.limits
        if self.name in ("elu", "celu"):
            low = -self.parameter
        return np.where(self.applies, low, -np.inf), np.where(self.applies, high, np.inf)

    @property
    def rounds(self) -> bool:
        """True: floating-point evaluation rounds."""
        return True

    is_relu = False

    @property
    def breaks(self) -> Matrix:
        """Raise: a smooth function has no pieces."""
        raise self.no_pieces()

    @property
    def slopes(self) -> Matrix:
        """Raise: a smooth function has no pieces."""
        raise self.no_pieces()

    @property
    def intercepts(self) -> Matrix:
        """Raise: a smooth function has no pieces."""
        raise self.no_pieces()

    @property
    def n_pieces(self) -> int:
        """Raise: a smooth function has no pieces."""
        raise self.no_pieces()

    def pieces(self, values: Matrix, errors: Matrix) -> NoReturn:
        """Raise: a smooth function has no pieces."""
        del values, errors
        raise self.no_pieces()

    def no_pieces(self) -> NetworkError:
        """Return the error for code that needs pieces."""
        return NetworkError(
            f"this needs a piecewise-linear network: got the activation {self.name!r}; expected "
            "'relu', 'leaky_relu', 'hardtanh' or another one of straight pieces"
        )

    def __call__(self, values: Matrix) -> Matrix:
        """Evaluate in float64; NaN stays NaN."""
        return self.at(values).values

    def at(self, values: Matrix) -> Enclosure:
        """Enclose the function of each number."""
        numbers = np.asarray(values, dtype=np.float64)
        with np.errstate(invalid="ignore", over="ignore"):
            found = EVALUATIONS[self.name](numbers, self.parameter)
        if self.on is None:
            return found
        return Enclosure(
            np.where(self.applies, found.values, numbers), np.where(self.applies, found.errors, 0.0)
        )

    def enclose(self, bounded: Enclosure, arithmetic: Arithmetic) -> Enclosure:
        """Enclose the function of numbers with errors, also as the given arithmetic computes it."""
        result = self.at(bounded.values)
        steepest = self.steepest
        errors = bounded.errors * (steepest * (1 + 8 * arithmetic.unit)) + result.errors
        if arithmetic is not FLOAT64:
            # Formulas such as x · (1 + erf(x / √2)) / 2 cancel, so the size of x counts, not f(x).
            size = np.ones_like(errors)
            if not self.facts.bounded_terms:
                size = steepest * (np.abs(bounded.values) + bounded.errors) + 1 + self.lift
            own = SOURCE_ULPS * arithmetic.unit * size + 5 * arithmetic.tiny
            errors = errors + np.where(
                self.applies, own + self.facts.source_step / self.parameter, 0.0
            )
        return Enclosure(result.values, errors * (1 + 16 * UNIT))


def _tabulated(name: str) -> Callable[[Matrix, float], Enclosure]:
    return lambda values, _: table(name).at(values)


def _scaled(enclosure: Enclosure, factor: float) -> Enclosure:
    """Multiply by a positive number; the product is rounded."""
    values = factor * enclosure.values
    return Enclosure(
        values, factor * enclosure.errors * (1 + 4 * UNIT) + UNIT * np.abs(values) + TINY
    )


def _linear_above(values: Matrix, below: Enclosure) -> Enclosure:
    """Return x where x > 0, and the enclosure elsewhere."""
    above = values > 0
    return Enclosure(np.where(above, values, below.values), np.where(above, 0.0, below.errors))


def _elu(values: Matrix, alpha: float) -> Enclosure:
    return _linear_above(values, _scaled(table("expm1").at(np.minimum(values, 0.0)), alpha))


def _celu(values: Matrix, alpha: float) -> Enclosure:
    quotients = np.minimum(values, 0.0) / alpha
    below = table("expm1").at(quotients)
    rounded = Enclosure(below.values, below.errors + UNIT * np.abs(quotients) + TINY)
    return _linear_above(values, _scaled(rounded, alpha))


def _selu(values: Matrix, _: float) -> Enclosure:
    return _scaled(_elu(values, SELU_ALPHA), SELU_SCALE)


def _softplus(values: Matrix, beta: float) -> Enclosure:
    products = beta * values
    found = table("softplus").at(products)
    rounded = Enclosure(found.values, found.errors + UNIT * np.abs(products) + TINY)
    quotients = rounded.values / beta
    errors = rounded.errors / beta * (1 + 4 * UNIT) + UNIT * np.abs(quotients) + TINY
    return found if beta == 1.0 else Enclosure(quotients, errors)


def _logsigmoid(values: Matrix, _: float) -> Enclosure:
    found = table("softplus").at(-values)
    return Enclosure(-found.values, found.errors)


def _softsign(values: Matrix, _: float) -> Enclosure:
    result = values / (1 + np.abs(values))
    result = np.where(np.isinf(values), np.sign(values), result)
    return Enclosure(result, 4 * UNIT * np.abs(result) + TINY)


def _hardswish(values: Matrix, _: float) -> Enclosure:
    inside = np.clip(values, -3.0, 3.0)
    curve = inside * (inside + 3) / 6
    result = np.where(values >= 3, values, curve)  # noqa: PLR2004 - the identity begins
    return Enclosure(result, np.where(values >= 3, 0.0, 5 * UNIT * np.abs(curve) + TINY))  # noqa: PLR2004


EVALUATIONS: Mapping[str, Callable[[Matrix, float], Enclosure]] = {
    "celu": _celu,
    "elu": _elu,
    "gelu": _tabulated("gelu"),
    "gelu_tanh": _tabulated("gelu_tanh"),
    "hardswish": _hardswish,
    "logsigmoid": _logsigmoid,
    "mish": _tabulated("mish"),
    "selu": _selu,
    "sigmoid": _tabulated("sigmoid"),
    "silu": _tabulated("silu"),
    "softplus": _softplus,
    "softsign": _softsign,
    "tanh": _tabulated("tanh"),
}
