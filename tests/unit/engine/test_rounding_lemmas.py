"""The lemmas of docs/explanation/rounding.md, with exact rational numbers as the oracle."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

native = pytest.importorskip("feta._native")

Rows = list[list[Fraction]]
SETS = native.instruction_sets()  # the fastest first
RELU = (np.zeros((1, 1)), np.array([[0.0], [1.0]]), np.zeros((2, 1)))
# Two breaks, slopes that are no powers of two, continuous: −0.3 at −1, 0.1 at 1.
BENT = (
    np.array([[-1.0], [1.0]]),
    np.array([[0.0], [0.25], [-0.75]]),
    np.array([[-0.25], [0.0], [1.0]]),
)
IDENTITY = (np.zeros((0, 1)), np.ones((1, 1)), np.zeros((1, 1)))


@dataclass(frozen=True)
class Problem:
    """A network over a small lattice, and one person."""

    bias: np.ndarray
    axes: tuple[np.ndarray, ...]  # (values, neurons)
    layers: tuple[tuple[tuple[np.ndarray, ...], np.ndarray, np.ndarray], ...]
    constants: np.ndarray

    def kernel(self, instructions: str, threshold: float = 0.0) -> object:
        kernel = native.Kernel(self.bias, np.zeros_like(self.bias), len(self.axes) + 1)
        for terms in self.axes:
            kernel.add_axis(terms, np.abs(terms))
        for activation, weight, bias in self.layers:
            kernel.add_layer(*activation, weight, bias, np.zeros_like(bias))
        outputs = len(self.layers[-1][2]) if self.layers else len(self.bias)
        kernel.set_rule(1 if outputs > 1 else 0, threshold, True, 0, outputs, outputs)
        native.allow_instructions(instructions)
        kernel.finish(True)
        native.allow_instructions(SETS[0])
        return kernel

    def scores(self, point: tuple[int, ...]) -> list[Fraction]:
        values = [
            Fraction(c)
            + Fraction(b)
            + sum(Fraction(terms[v, n]) for terms, v in self._terms(point))
            for n, (c, b) in enumerate(zip(self.constants, self.bias, strict=True))
        ]
        for activation, weight, bias in self.layers:
            active = [_activate(activation, value) for value in values]
            values = [
                Fraction(b) + sum(Fraction(w) * x for w, x in zip(row, active, strict=True) if w)
                for row, b in zip(weight.tolist(), bias.tolist(), strict=True)
            ]
        return values

    def scores_in_float32(self, point: tuple[int, ...], order: np.ndarray) -> np.ndarray:
        """Compute the scores in float32, with the terms of each sum in another order."""
        single = np.float32
        parts = [self.bias, self.constants, *(terms[v] for terms, v in self._terms(point))]
        values = np.zeros(len(self.bias), single)
        for n in order:
            if n < len(parts):
                values = values + parts[n].astype(single)
        for n in range(len(order), len(parts)):
            values = values + parts[n].astype(single)
        for activation, weight, bias in self.layers:
            breaks, slopes, intercepts = (part.astype(single) for part in activation)
            piece = (values[None, :] >= breaks).sum(axis=0)
            values = slopes[piece, 0] * values + intercepts[piece, 0]
            sums = np.zeros(len(bias), single)
            for n in np.argsort(order[: len(values)]):
                sums = sums + weight[:, n].astype(single) * values[n]
            values = sums + bias.astype(single)
        return values

    def _terms(self, point: tuple[int, ...]) -> Iterator[tuple[np.ndarray, int]]:
        return zip(self.axes, point, strict=True)


def _activate(activation: tuple[np.ndarray, ...], value: Fraction) -> Fraction:
    breaks, slopes, intercepts = (part[:, 0].tolist() for part in activation)
    piece = sum(value >= Fraction(at) for at in breaks)
    return Fraction(slopes[piece]) * value + Fraction(intercepts[piece])


def numbers(rng: np.random.Generator, kind: str, shape: tuple[int, ...]) -> np.ndarray:
    """Return weights or terms of a kind that is hard to round."""
    normal = rng.normal(size=shape)
    match kind:
        case "usual":
            return normal
        case "cancelling":  # sums of huge numbers that almost vanish
            return np.where(rng.random(shape) < 0.5, 1.0, -1.0) * (1 + normal * 2.0**-20)
        case "subnormal":  # in float32: below 2^-126
            return normal * 2.0 ** rng.integers(-149, -122, size=shape)
        case (
            "tiny"
        ):  # results near the smallest normal number of float32, where processes may flush
            return normal * 2.0 ** rng.integers(-68, -58, size=shape)
        case "spread":
            return normal * 2.0 ** rng.integers(-60, 20, size=shape)
        case "ties":  # many exact zeros and equal numbers
            return rng.integers(-1, 2, size=shape).astype(float)
        case _:
            raise AssertionError(kind)


KINDS = ["usual", "cancelling", "subnormal", "spread", "ties"]


def problem_of(rng: np.random.Generator, kind: str, *, width: int, outputs: int) -> Problem:
    """Return a random problem; its last layers vary in kind and number."""
    n_axes = int(rng.integers(1, 7))
    lengths = [2] * n_axes if n_axes > 3 else rng.integers(1, 6, size=n_axes)
    axes = tuple(numbers(rng, kind, (int(length), width)) for length in lengths)
    layers, inputs = [], width
    for depth in range(int(rng.integers(0, 3))):
        activation = (RELU, BENT, IDENTITY)[int(rng.integers(0, 3)) if depth else 0]
        n_outputs = outputs if depth else width
        layers.append((activation, numbers(rng, kind, (n_outputs, inputs)), np.zeros(n_outputs)))
        inputs = n_outputs
    if layers and len(layers[-1][2]) != outputs:
        layers.append((RELU, numbers(rng, kind, (outputs, inputs)), numbers(rng, kind, (outputs,))))
    return Problem(numbers(rng, kind, (width,)), axes, tuple(layers), numbers(rng, kind, (width,)))


def check(problem: Problem, rng: np.random.Generator, instructions: str) -> int:
    """Assert all lemmas for some nodes; return the number of comparisons."""
    kernel = problem.kernel(instructions)
    trees = [kernel.tree(axis) for axis in range(len(problem.axes))]  # type: ignore[attr-defined]
    nodes = np.array(
        [[0] * len(trees)]
        + [[int(rng.integers(0, len(tree.begin))) for tree in trees] for _ in range(3)],
        dtype=np.int32,
    )
    lattice = list(product(*(range(len(terms)) for terms in problem.axes)))
    points = [lattice[n] for n in rng.permutation(len(lattice))[:24]]
    sizes = np.abs(problem.constants)[None, :]
    bounds = kernel.node_bounds(  # type: ignore[attr-defined]
        problem.constants[None, :], sizes, nodes, np.array(points, dtype=np.int32)
    )
    checked = 0
    exact = {point: problem.scores(point) for point in points}
    orders = [rng.permutation(max(64, len(problem.bias))) for _ in range(2)]
    for row, point in enumerate(points):
        for output, score in enumerate(exact[point]):
            error32, error64, source = (
                Fraction(float(errors[output]))
                for errors in (bounds.errors32, bounds.errors64, bounds.source_errors)
            )
            assert abs(Fraction(float(bounds.scores32[row, output])) - score) <= error32
            assert abs(Fraction(float(bounds.scores64[row, output])) - score) <= error64
            for order in orders:
                rounded = problem.scores_in_float32(point, order)[output]
                assert abs(Fraction(float(rounded)) - score) <= source
            checked += 2 + len(orders)
    for row, node in enumerate(nodes.tolist()):
        inside = [
            set(tree.order[tree.begin[n] : tree.end[n]].tolist())
            for tree, n in zip(trees, node, strict=True)
        ]
        for point in points:
            if not all(v in values for v, values in zip(point, inside, strict=True)):
                continue
            for output, score in enumerate(exact[point]):
                assert Fraction(float(bounds.low[row, output])) <= score
                assert score <= Fraction(float(bounds.high[row, output]))
            if len(bounds.backward_low):
                assert Fraction(float(bounds.backward_low[row])) <= exact[point][0]
                assert exact[point][0] <= Fraction(float(bounds.backward_high[row]))
            checked += 1
    return checked


@pytest.mark.parametrize("instructions", SETS)
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_bounds_contain_the_exact_scores(kind: str, outputs: int, instructions: str) -> None:
    rng = np.random.default_rng(KINDS.index(kind) * 10 + outputs)
    assert sum(
        check(problem_of(rng, kind, width=width, outputs=outputs), rng, instructions)
        for width in (1, 3, 9)
        for _ in range(4)
    )


def check_forms(problem: Problem, rng: np.random.Generator, instructions: str) -> int:
    """Assert lemma 24 for thresholds at, or one ulp next to, a score; return what was decided."""
    lattice = list(product(*(range(len(terms)) for terms in problem.axes)))
    exact = {point: problem.scores(point)[0] for point in lattice}
    scores = sorted(exact.values())
    at = float(scores[int(rng.integers(0, len(scores)))])
    threshold = float(np.nextafter(at, at + rng.integers(-1, 2)))
    kernel = problem.kernel(instructions, threshold)
    trees = [kernel.tree(axis) for axis in range(len(problem.axes))]  # type: ignore[attr-defined]
    nodes = [[0] * len(trees)]
    nodes += [[int(rng.integers(0, len(tree.begin))) for tree in trees] for _ in range(6)]
    bounds = kernel.node_bounds(  # type: ignore[attr-defined]
        problem.constants[None, :],
        np.abs(problem.constants)[None, :],
        np.array(nodes, dtype=np.int32),
        np.array(lattice[:1], dtype=np.int32),
    )
    decided = 0
    for row, node in enumerate(nodes):
        inside = [
            set(tree.order[tree.begin[n] : tree.end[n]].tolist())
            for tree, n in zip(trees, node, strict=True)
        ]
        for sign, counts, others in (
            (1, bounds.below, bounds.not_below),
            (-1, bounds.above, bounds.not_above),
        ):
            rest = [lattice[i] for i in others.get(row, ())]
            points = set(product(*map(sorted, inside)))
            assert len(rest) == len(set(rest))
            assert points.issuperset(rest)
            assert counts[row] == len(points) - len(rest)
            for point in points - set(rest):
                assert sign * exact[point] < sign * Fraction(threshold)
            decided += int(counts[row])
    return decided


@pytest.mark.parametrize("instructions", SETS)
@pytest.mark.parametrize("kind", [*KINDS, "tiny"])
def test_forms_decide_only_counterparts_on_their_side(kind: str, instructions: str) -> None:
    rng = np.random.default_rng(sum(map(ord, kind)))
    problems = [
        problem
        for width in (1, 3, 9, 17)
        for _ in range(6)
        if (problem := problem_of(rng, kind, width=width, outputs=1)).layers
    ]
    decided = sum(check_forms(problem, rng, instructions) for problem in problems)
    assert decided or kind in ("subnormal", "tiny")  # their scores are smaller than the errors


@pytest.mark.parametrize("instructions", SETS)
@pytest.mark.parametrize("kind", ["subnormal", "tiny"])
def test_bounds_hold_if_subnormal_numbers_are_flushed_to_zero(kind: str, instructions: str) -> None:
    torch = pytest.importorskip("torch")
    if not torch.set_flush_denormal(True):
        pytest.skip("this processor does not flush")
    try:
        rng = np.random.default_rng(5)
        for width in (1, 3, 9):
            for outputs in (1, 3):
                assert check(problem_of(rng, kind, width=width, outputs=outputs), rng, instructions)
    finally:
        torch.set_flush_denormal(False)


@pytest.mark.parametrize("instructions", SETS)
def test_bounds_hold_with_many_terms_and_near_the_limit(instructions: str) -> None:
    rng = np.random.default_rng(7)
    wide = problem_of(rng, "cancelling", width=300, outputs=1)
    huge = Problem(
        np.array([1e29, -1e29, 1.0]),
        (np.array([[3e29, 1.0, -1e29], [-2e29, 1e29, 1e-29]]),),
        ((RELU, np.array([[1.0, -0.75, 1e-3], [-1.0, 1.0, 1.0]]), np.array([-1e29, 1.0])),
         (RELU, np.array([[0.5, -0.5]]), np.array([1e-3]))),
        np.array([1e29, 2e29, -1e29]),
    )  # fmt: skip
    assert check(wide, rng, instructions)
    assert check(huge, rng, instructions)
