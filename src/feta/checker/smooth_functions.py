"""Smooth functions of rational intervals, by decimal arithmetic: for the checker alone.

All functions but three are monotone; those fall and then rise, so that an interval around their
minimum also contains it. Errors of the decimals are far below ERROR.
"""

from collections.abc import Callable, Mapping
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache

Interval = tuple[Fraction, Fraction]
Function = Callable[[Fraction, Fraction], Fraction]  # of a number and the parameter

# Digits of decimals, and a bound on the error of each function, times 1 + |x|.
DIGITS = 420
ERROR = Fraction(1, 10**120)

# e^-FAR and erf's distance from 1 at √FAR are below ERROR.
FAR = 300

# The constants of SELU in the frameworks.
ALPHA, SCALE = Fraction(1.6732632423543772), Fraction(1.0507009873554805)


def enclose(name: str, ends: Interval, parameter: Fraction) -> Interval:
    """Return an interval that contains the function of all numbers of an interval."""
    function = FUNCTIONS[name]
    low, high = (function(end, parameter) for end in ends)
    margin = ERROR * (1 + max(abs(ends[0]), abs(ends[1])))
    least = min(low, high)
    if name in VALLEYS and ends[0] != ends[1] and ends[0] < 0:
        # The slope is at least −1/2 on the falling side, so the minimum is not much lower.
        least -= (ends[1] - ends[0]) / 2
    return least - margin, max(low, high) + margin


def _decimal(x: Fraction) -> Decimal:
    return Decimal(x.numerator) / Decimal(x.denominator)


@cache
def _exp(x: Fraction) -> Fraction:
    """Return e^x for x ≤ FAR."""
    if x < -FAR:
        return Fraction(0)
    with localcontext() as context:
        context.prec = DIGITS
        return Fraction(_decimal(x).exp())


def _sigmoid(x: Fraction) -> Fraction:
    return 1 / (1 + _exp(-x)) if x >= 0 else 1 - 1 / (1 + _exp(x))


def _tanh(x: Fraction) -> Fraction:
    return 2 * _sigmoid(2 * x) - 1


def _softplus(x: Fraction) -> Fraction:
    with localcontext() as context:
        context.prec = DIGITS
        return max(x, Fraction(0)) + Fraction((1 + _decimal(_exp(-abs(x)))).ln())


def _mish(x: Fraction) -> Fraction:
    """Return x · tanh(ln(1 + e^x)), with tanh(ln u) = (u² − 1) / (u² + 1)."""
    if x > FAR:
        return x
    square = (1 + _exp(x)) ** 2
    return x * (square - 1) / (square + 1)


def _erf(x: Fraction) -> Fraction:
    """Return 2 / √π · Σ (−1)^n x^(2n+1) / (n! (2n + 1)); terms are below 10^131 for x² ≤ FAR."""
    if x * x > FAR:
        return Fraction(1 if x > 0 else -1)
    with localcontext() as context:
        context.prec = DIGITS
        square, power = _decimal(x) ** 2, _decimal(x)
        total, n = power, 0
        while abs(power) > Decimal(10) ** (-DIGITS + 140):
            n += 1
            power = -power * square / n
            total += power / (2 * n + 1)
        return Fraction(2 * total / _pi().sqrt())


@cache
def _pi() -> Decimal:
    """Return π by Machin's formula, 16·arctan(1/5) − 4·arctan(1/239)."""

    def arctan_inverse(n: int) -> Decimal:
        power = total = Decimal(1) / n
        k = 1
        while abs(power) > Decimal(10) ** (-DIGITS - 10):
            power = -power / (n * n)
            k += 2
            total += power / k
        return total

    with localcontext() as context:
        context.prec = DIGITS + 20
        return 16 * arctan_inverse(5) - 4 * arctan_inverse(239)


@cache
def _root(number: Fraction, *, of_pi: bool = False) -> Fraction:
    """Return √number, or √(number / π)."""
    with localcontext() as context:
        context.prec = DIGITS
        return Fraction((_decimal(number) / (_pi() if of_pi else 1)).sqrt())


def _gelu(x: Fraction) -> Fraction:
    return x / 2 * (1 + _erf(x * _root(Fraction(1, 2))))


def _gelu_tanh(x: Fraction) -> Fraction:
    if abs(x) > FAR:
        return max(x, Fraction(0))
    inner = _root(Fraction(2), of_pi=True) * (x + Fraction(44715, 10**6) * x**3)
    return x * _sigmoid(2 * inner)


def _elu(x: Fraction, alpha: Fraction) -> Fraction:
    return x if x >= 0 else alpha * (_exp(x) - 1)


def _hardswish(x: Fraction) -> Fraction:
    return x * min(max(x + 3, Fraction(0)), Fraction(6)) / 6


FUNCTIONS: Mapping[str, Function] = {
    "celu": lambda x, alpha: x if x >= 0 else alpha * (_exp(x / alpha) - 1),
    "elu": _elu,
    "gelu": lambda x, _: _gelu(x),
    "gelu_tanh": lambda x, _: _gelu_tanh(x),
    "hardswish": lambda x, _: _hardswish(x),
    "logsigmoid": lambda x, _: -_softplus(-x),
    "mish": lambda x, _: _mish(x),
    "selu": lambda x, _: SCALE * _elu(x, ALPHA),
    "sigmoid": lambda x, _: _sigmoid(x),
    "silu": lambda x, _: x * _sigmoid(x),
    "softplus": lambda x, beta: _softplus(beta * x) / beta,
    "softsign": lambda x, _: x / (1 + abs(x)),
    "tanh": lambda x, _: _tanh(x),
}

# They fall, with slopes of at least −1/2, and then rise.
VALLEYS = ("gelu", "gelu_tanh", "hardswish", "mish", "silu")
