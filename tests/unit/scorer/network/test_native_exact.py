"""Exact scores of the kernel, compared with fractions that are computed here."""

import itertools
import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from feta import Network
from feta.arrays import Matrix, Vector
from feta.dyadic import Dyadic
from feta.scorer.native import native
from feta.scorer.network.activation import Activation, absolute, clip, piecewise, prelu, relu
from feta.scorer.network.layers import Affine, Columns, LookupTable
from feta.scorer.network.native_exact import NativeExact

pytestmark = pytest.mark.skipif(native is None, reason="the kernel was not built")

BEND = piecewise("bend", [-1.0, 0.5], [0.25, 1.0, -3.0], [-0.75, 0.0, 2.0])
ACTIVATIONS = [relu(), absolute(), clip(), prelu([0.1]), BEND]


def fractions(values: Vector) -> list[Fraction]:
    return [Fraction(float(value)) for value in values]


def activated(activation: Activation, neuron: int, value: Fraction) -> Fraction:
    at = neuron if activation.width > 1 else 0
    piece = sum(value >= Fraction(float(edge)) for edge in activation.breaks[:, at])
    slope, intercept = activation.slopes[piece, at], activation.intercepts[piece, at]
    return Fraction(float(slope)) * value + Fraction(float(intercept))


def expected(network: Network, person: Vector) -> list[Fraction]:
    """Return the scores in fractions; no line is shared with the code under test."""
    values = fractions(network.first.bias)
    for neuron, slopes in enumerate(network.first.slopes):
        terms = zip(fractions(slopes), fractions(person), strict=True)
        values[neuron] += sum(slope * number for slope, number in terms)
        for table in network.first.tables:
            row = table.numbers.tolist().index(person[table.column])
            values[neuron] += Fraction(float(table.rows[row, neuron]))
    for activation, layer in network.piecewise_steps:
        values = [activated(activation, neuron, value) for neuron, value in enumerate(values)]
        values = [
            sum((w * v for w, v in zip(fractions(row), values, strict=True)), Fraction(float(bias)))
            for row, bias in zip(layer.weight, layer.bias, strict=True)
        ]
    return values


def numbers(random: np.random.Generator, kind: str, shape: tuple[int, ...]) -> Matrix:
    """Draw numbers: in eighths, of all sizes, nearly all 0, or the smallest ones."""
    match kind:
        case "eighths":
            return np.asarray(random.integers(-16, 17, shape) / 8)
        case "sizes":
            return np.asarray(random.normal(size=shape) * 10.0 ** random.integers(-60, 60, shape))
        case "zeros":
            return np.asarray(random.integers(-1, 2, shape) * (random.random(shape) < 0.1))
        case _:
            return np.asarray(random.integers(-3, 4, shape) * 5e-324)


@pytest.mark.parametrize("kind", ["eighths", "sizes", "zeros", "smallest"])
@pytest.mark.parametrize("seed", range(6))
def test_scores_are_exact(kind: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    width, depth, outputs = random.integers(1, 6), random.integers(0, 4), random.integers(1, 4)
    sizes = [int(size) for size in random.integers(1, 7, depth)] + [int(outputs)]
    table = LookupTable(int(width), np.array([0.0, 2.0]), numbers(random, kind, (2, sizes[0])))
    slopes = np.hstack([numbers(random, kind, (sizes[0], int(width))), np.zeros((sizes[0], 1))])
    first = Columns(numbers(random, kind, (sizes[0],)), slopes, (table,))
    layers = [
        Affine(numbers(random, kind, (after, before)), numbers(random, kind, (after,)))
        for before, after in itertools.pairwise(sizes)
    ]
    steps = [(ACTIVATIONS[random.integers(len(ACTIVATIONS))], layer) for layer in layers]
    network = Network(first, tuple(a for a, _ in steps), tuple(layer for _, layer in steps))
    people = np.hstack([numbers(random, kind, (7, int(width))), random.choice([0.0, 2.0], (7, 1))])
    scores = network.exact.scores(people)
    # The smallest numbers take 1,100 bits per layer, so that some networks are left to Python.
    assert kind == "smallest" or NativeExact(network).scores(people) is not None
    assert scores.fractions() == [score for row in people for score in expected(network, row)]
    assert network.exact.scores_in_python(people).fractions() == scores.fractions()


@pytest.mark.parametrize("step", [-1, 0, 1])
def test_a_value_next_to_a_break_takes_the_right_piece(step: int) -> None:
    edge = np.nextafter(0.5, step) if step else 0.5
    network = Network.from_layers([([[1.0]], [0.0]), ([[1.0]], [0.0])], activation=BEND)
    scores = NativeExact(network).scores(np.array([[edge], [-1.0], [np.nextafter(-1, -2)]]))
    assert scores is not None
    rows = np.array([[edge], [-1.0], [np.nextafter(-1, -2)]])
    assert scores.fractions() == [score for row in rows for score in expected(network, row)]


def test_long_integers_and_invalid_rows_are_left_to_python() -> None:
    tiny, huge = 5e-324, 1e300
    layers: Any = [([[tiny, huge]], [0.0]), ([[huge]], [tiny]), ([[huge]], [tiny])]
    network = Network.from_layers(layers)
    people = np.array([[tiny, huge]])
    assert NativeExact(network).scores(people) is None
    assert network.exact.scores(people).fractions() == expected(network, people[0])
    plain = NativeExact(Network.from_layers([([[1.0, 2.0]], [0.0])]))
    for bad in (np.nan, np.inf):
        assert plain.scores(np.array([[1.0, bad]])) is None


def test_a_copy_computes_the_same() -> None:
    exact = NativeExact(Network.from_layers([([[0.1, 2.0]], [0.3])]))
    people = np.array([[0.7, -1e9], [0.0, 0.0]])
    first, second = exact.scores(people), pickle.loads(pickle.dumps(exact)).scores(people)
    assert first is not None
    assert first.fractions() == second.fractions()
    assert exact.scores(people[:0]) is not None


def test_the_kernel_checks_shapes() -> None:
    chain = native.ExactChain(np.ones((2, 3)), np.ones((1, 3)))
    with pytest.raises(ValueError, match=r"^invalid people: expected one row per person"):
        chain.scores(np.ones((1, 3)), np.zeros((1, 0), dtype=np.int64))
    with pytest.raises(ValueError, match=r"^invalid shape of slopes: got 2 columns; expected 3"):
        native.ExactChain(np.ones((1, 2)), np.ones((1, 3)))
    with pytest.raises(ValueError, match=r"^invalid slopes: got NaN or infinity"):
        native.ExactChain(np.full((1, 3), np.nan), np.ones((1, 3)))
    chain.add_table(np.ones((2, 3)))
    with pytest.raises(ValueError, match=r"^invalid row of a table"):
        chain.scores(np.ones((1, 2)), np.full((1, 1), 2))
    square = (np.zeros((1, 3)), np.ones((2, 3)), np.ones((2, 3)), np.ones((1, 3)))
    with pytest.raises(ValueError, match=r"^invalid layer: expected a piece more than breaks"):
        chain.add_layer(*square, np.ones((2, 1)))


@pytest.mark.parametrize(
    ("numerator", "exponent", "denominator"),
    [(2**53 + 1, 0, 1), (2**54 + 3, 3, 7), (3, -1074, 2), (-(2**200) - 1, -190, 3), (0, -9000, 1)],
)
def test_floats_are_rounded_once(numerator: int, exponent: int, denominator: int) -> None:
    number = Dyadic(np.array([numerator], dtype=object), exponent, denominator)
    exact = Fraction(numerator) * Fraction(2) ** exponent / denominator
    assert number.floats().tolist() == [float(exact)]
