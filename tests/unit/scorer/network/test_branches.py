from dataclasses import replace

import numpy as np
import pytest

from feta import NetworkError
from feta.scorer.network import lowering
from feta.scorer.network.activation import Activation, Maxout, hardsigmoid, relu
from feta.scorer.network.branches import Branch, BranchBuilder
from feta.scorer.network.fold import BatchNorm
from feta.scorer.network.input_blocks import embedded, first_layer, inputs
from feta.scorer.network.network import Network
from feta.scorer.network.smooth.activation import Smooth
from tests.graph_cases import FUNCTIONS, Recipe, random_recipe


def build(recipe: Recipe) -> Network:
    graph = BranchBuilder(recipe.n_columns)
    built: list[Branch] = []
    for name, of, numbers in recipe.steps:
        sources = [Branch(graph, built[index].node) for index in of]
        match name:
            case "entry":
                columns = inputs(recipe.n_columns)
                built.append(graph.entry([columns[index] for index in numbers]))
                continue
            case "join":
                built.append(graph.join(sources))
                continue
            case "sum":
                built.append(graph.total(sources[0], sources[1], "the sum"))
                continue
            case "linear":
                sources[0].linear(np.array(numbers[0]), np.array(numbers[1]))
            case "scale":
                width = sources[0].width
                sources[0].scale(np.full(width, numbers[0]), np.full(width, numbers[1]), width)
            case _:
                sources[0].activate(FUNCTIONS[name][0](), name)
        built.append(sources[0])
    return graph.lower(built[-1]).network(source="float64")


@pytest.mark.parametrize("number", range(60))
def test_the_chain_of_a_random_graph_computes_the_same(number: int) -> None:
    rng = np.random.default_rng([3, number])
    recipe = random_recipe(rng)
    network = build(recipe)
    rows = rng.normal(size=(20, recipe.n_columns)) * 2
    truth = np.array([recipe.values(row)[-1] for row in rows.tolist()])
    np.testing.assert_allclose(network(rows), truth, rtol=1e-11, atol=1e-11)


def test_a_residual_block_is_one_layer_more_than_its_chain() -> None:
    graph = BranchBuilder(2)
    x = graph.entry(inputs(2))
    block = Branch(graph, x.node)
    block.linear(np.array([[1.0, 2.0], [3.0, -4.0], [0.5, 0.5]]), np.zeros(3))
    block.activate(relu(), "relu")
    block.linear(np.ones((2, 3)), np.array([1.0, 2.0]))
    network = graph.lower(graph.total(block, x, "the sum")).network()
    assert network.first.slopes.tolist() == [[1, 2], [3, -4], [0.5, 0.5], [1, 0], [0, 1]]
    (activation,) = network.activations
    assert isinstance(activation, Activation)
    assert activation.slopes.tolist() == [[0, 0, 0, 1, 1], [1, 1, 1, 1, 1]]
    (layer,) = network.layers
    assert layer.weight.tolist() == [[1, 1, 1, 1, 0], [1, 1, 1, 0, 1]]
    assert layer.bias.tolist() == [1, 2]
    assert network.exact_scores(np.array([[1.0, 1.0]])).fractions() == [
        3 + 1 + 1 + 1,
        3 + 1 + 2 + 1,
    ]


def test_a_smooth_layer_passes_the_other_neurons() -> None:
    graph = BranchBuilder(1)
    x = graph.entry(inputs(1))
    curve = Branch(graph, x.node)
    curve.activate(Smooth("tanh"), "tanh")
    network = graph.lower(graph.total(curve, x, "the sum")).network()
    (activation,) = network.activations
    assert isinstance(activation, Smooth)
    assert activation.applies.tolist() == [True, False]
    enclosure = activation.at(np.array([[0.5, 1e300]]))
    assert enclosure.values[0, 1] == 1e300
    assert enclosure.errors[0, 1] == 0
    assert activation.steepest.tolist() == [1.0, 1.0]
    assert activation.lift.tolist() == [0.0, 0.0]
    low, high = activation.limits
    assert (low.tolist(), high.tolist()) == ([-1, -np.inf], [1, np.inf])


def test_terms_of_one_neuron_are_never_merged() -> None:
    graph = BranchBuilder(1)
    x = graph.entry(inputs(1))
    line = Branch(graph, x.node)
    line.linear(np.array([[-1.0]]), np.zeros(1))
    network = graph.lower(graph.total(line, x, "the sum")).network()
    assert network.first.slopes.tolist() == [[1.0], [-1.0]]
    assert network.layers[0].weight.tolist() == [[1.0, 1.0]]


def test_columns_that_are_read_twice_are_copied_first() -> None:
    graph = BranchBuilder(1)
    (column,) = inputs(1)
    x, twice = graph.entry([column]), graph.entry([replace(column, scale=2.0)])
    network = graph.lower(graph.total(x, twice, "the sum")).network()
    assert network.first.slopes.tolist() == [[1.0], [2.0]]
    assert network(np.array([[1.5]])).tolist() == [[4.5]]


def test_embeddings_and_numbers_enter_together() -> None:
    graph = BranchBuilder(2)
    first, second = inputs(2)
    table = graph.entry(embedded([first], np.array([[1.0, 2.0], [3.0, 5.0]]), "the table"))
    number = graph.entry([second])
    wide = Branch(graph, number.node)
    wide.linear(np.array([[10.0]]), np.zeros(1))
    table.linear(np.array([[1.0, 1.0]]), np.zeros(1))
    network = graph.lower(graph.total(table, wide, "the sum")).network()
    assert network(np.array([[0.0, 1.0], [1.0, 2.0]])).tolist() == [[13.0], [28.0]]


def test_all_steps_of_builders_are_there() -> None:
    graph = BranchBuilder(4)
    x = graph.entry(inputs(4))
    most = Branch(graph, x.node)
    most.activate(Maxout(2), "maxout")
    gate = Branch(graph, most.node)
    gate.activate(hardsigmoid(), "hardsigmoid")
    zeros, ones = np.zeros(2), np.ones(2)
    gate.batch_norm(BatchNorm(zeros + 1, ones, 2 * ones, zeros, 3.0))
    network = graph.lower(graph.total(gate, most, "the sum")).network()
    # The maxima are 3 and 7; hardsigmoid gives 1 there; (1 − 1) · 2 / √4 = 0.
    np.testing.assert_allclose(network(np.array([[1.0, 3.0, 7.0, 2.0]])), [[3.0, 7.0]], rtol=1e-12)


def test_wide_and_deep_chains_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = BranchBuilder(3)
    x = graph.entry(inputs(3))
    curve = Branch(graph, x.node)
    curve.activate(relu(), "relu")
    total = graph.total(curve, x, "the sum")
    monkeypatch.setattr(lowering, "MAX_WIDTH", 5)
    with pytest.raises(NetworkError, match="too many values: got 6; expected at most 5"):
        graph.lower(total)
    monkeypatch.setattr(lowering, "MAX_WIDTH", 100)
    monkeypatch.setattr(lowering, "MAX_LAYERS", 0)
    with pytest.raises(NetworkError, match="too many layers"):
        graph.lower(total)


def test_sums_of_unequal_widths_are_refused() -> None:
    graph = BranchBuilder(3)
    x, y = graph.entry(inputs(3)), graph.entry(inputs(2))
    with pytest.raises(NetworkError, match="different widths: got 3 and 2"):
        graph.total(x, y, "the sum")


def test_neurons_of_smooth_layers_are_checked() -> None:
    with pytest.raises(NetworkError, match="invalid neurons"):
        Smooth("tanh", on=np.array([0.5, 1.0]))


def test_terms_of_an_embedding_that_cancel_count_in_the_error_bound() -> None:
    table = embedded(inputs(1), np.array([[1000.0, 1000.0], [500.0, 500.0]]), "the table")
    parts = first_layer(table, np.array([[1.0, -1.0]]), np.zeros(1), 1)
    assert not parts.tables[0].rows.any()
    assert parts.affine.cancelled_magnitude[0] >= 2000
