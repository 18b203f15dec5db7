"""Smooth activations in Arb's ball arithmetic (extra `smooth`): the definition of each function.

`formula` accepts balls and power series of balls, so tables of polynomials and exact scores come
from the same lines.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import RLock
from typing import Any

from flint import arb, ctx

from feta.scorer.network.smooth.activation import SELU_ALPHA, SELU_SCALE

_LOCK = RLock()

# A ball, or a power series of balls; python-flint ships no types.
Ball = Any
Function = Callable[[Ball, Ball], Ball]


def _sigmoid(x: Ball) -> Ball:
    return 1 / (1 + (-x).exp())


def _tanh(x: Ball) -> Ball:
    return 1 - 2 / (1 + (2 * x).exp())


def _softplus(x: Ball) -> Ball:
    return (1 + x.exp()).log()


def _mish(x: Ball) -> Ball:
    return x * (1 - 2 / ((1 + x.exp()) * (1 + x.exp()) + 1))


def _gelu(x: Ball) -> Ball:
    return x / 2 * (1 + (x / arb(2).sqrt()).erf())


def _gelu_tanh(x: Ball) -> Ball:
    inner = (2 / arb.pi()).sqrt() * (x + arb("0.044715") * x * x * x)
    return x / 2 * (1 + _tanh(inner))


def _exponential_minus_one(x: Ball) -> Ball:
    return x.exp() - 1


FORMULAS: Mapping[str, Callable[[Ball], Ball]] = {
    "tanh": _tanh,
    "sigmoid": _sigmoid,
    "silu": lambda x: x * _sigmoid(x),
    "gelu": _gelu,
    "gelu_tanh": _gelu_tanh,
    "mish": _mish,
    "softplus": _softplus,
    "expm1": _exponential_minus_one,
}


# Beyond this, e^-|x| is below 2^-5900, and a function is one of its asymptotes but for NEGLIGIBLE.
FAR = 4096
NEGLIGIBLE = arb(0, arb(2) ** -5000)


def _tabulated(name: str, left: Callable[[Ball], Ball], right: Callable[[Ball], Ball]) -> Function:
    def value(x: Ball, _: Ball) -> Ball:
        if x > FAR:
            return right(x) + NEGLIGIBLE
        if x < -FAR:
            return left(x) + NEGLIGIBLE
        return FORMULAS[name](x)

    return value


def _zero(_: Ball) -> Ball:
    return arb(0)


def _one(_: Ball) -> Ball:
    return arb(1)


def _minus_one(_: Ball) -> Ball:
    return arb(-1)


def _itself(x: Ball) -> Ball:
    return x


_SOFTPLUS = _tabulated("softplus", _zero, _itself)
_EXPM1 = _tabulated("expm1", _minus_one, _itself)


def _in_parts(x: Ball, below: Callable[[Ball], Ball], above: Callable[[Ball], Ball]) -> Ball:
    """Return one function above 0 and another below; a ball around 0 gets the union of both."""
    if x >= 0:
        return above(x)
    if x <= 0:
        return below(x)
    lower = below(x.min(arb(0)))
    return lower.union(above(x.max(arb(0))))


def _elu(x: Ball, alpha: Ball) -> Ball:
    return _in_parts(x, lambda z: alpha * _EXPM1(z, alpha), _itself)


def _celu(x: Ball, alpha: Ball) -> Ball:
    return _in_parts(x, lambda z: alpha * _EXPM1(z / alpha, alpha), _itself)


def _selu(x: Ball, _: Ball) -> Ball:
    return arb(SELU_SCALE) * _elu(x, arb(SELU_ALPHA))


def _softsign(x: Ball, _: Ball) -> Ball:
    return x / (1 + abs(x))


def _hardswish(x: Ball, _: Ball) -> Ball:
    inside = x.max(arb(-3)).min(arb(3))
    if x >= 3:  # noqa: PLR2004 - the identity begins
        return x
    curve = inside * (inside + 3) / 6
    return curve if x <= 3 else curve.union(x.max(arb(3)))  # noqa: PLR2004


# The functions of balls, with the parameter of the activation.
FUNCTIONS: Mapping[str, Function] = {
    "celu": _celu,
    "elu": _elu,
    "gelu": _tabulated("gelu", _zero, _itself),
    "gelu_tanh": _tabulated("gelu_tanh", _zero, _itself),
    "hardswish": _hardswish,
    "logsigmoid": lambda x, p: -_SOFTPLUS(-x, p),
    "mish": _tabulated("mish", _zero, _itself),
    "selu": _selu,
    "sigmoid": _tabulated("sigmoid", _zero, _one),
    "silu": _tabulated("silu", _zero, _itself),
    "softplus": lambda x, beta: _SOFTPLUS(beta * x, beta) / beta,
    "softsign": _softsign,
    "tanh": _tabulated("tanh", _minus_one, _one),
}


@contextmanager
def working_precision(bits: int, *, terms: int = 1) -> Iterator[None]:
    """Let balls have this precision, and power series this many terms."""
    with _LOCK:  # the context of python-flint belongs to the process
        before = ctx.prec, ctx.cap
        ctx.prec, ctx.cap = bits, terms
        try:
            yield
        finally:
            ctx.prec, ctx.cap = before
