"""Small spaces and models that several tests use."""

from dataclasses import replace

import numpy as np

from feta import Categorical, FeatureSpace, Integer, Model, Network, Real
from feta.scorer.network.activation import Activation
from feta.scorer.network.layers import Affine

SPACE = FeatureSpace(
    (
        Integer("age", 18, 90, sensitive=True),
        Categorical("sex", ("female", "male"), sensitive=True),
        Real("income", 0, 100),
    )
)
PERSON = SPACE.encode({"age": 30, "sex": "female", "income": 50})[0]


def linear(age: float = 0.0, female: float = 0.0, male: float = 0.0, bias: float = 0.0) -> Model:
    """Return a model with a linear score over SPACE."""
    return Model(SPACE, Network.from_layers([([[age, female, male, 0.0]], [bias])]), threshold=0.0)


def rescaled(network: Network, rng: np.random.Generator, power: int) -> Network:
    """Permute hidden neurons and rescale each by 2^±power; the function remains the same.

    Rescaling is exact if the activation has its only break at 0 (ReLU, leaky ReLU, PReLU, |z|,
    identity, and therefore maxout). Neurons with other activations are only permuted.
    """
    first, layers, activations = network.first, list(network.layers), list(network.activations)
    for index, activation in enumerate(activations):
        width = layers[index].weight.shape[1]
        breaks_at_zero = not activation.breaks.any() and not activation.intercepts.any()
        factors = 2.0 ** (rng.choice([-power, 0, power], width) * breaks_at_zero)
        order = rng.permutation(width)
        if index == 0:
            tables = tuple(replace(t, rows=(t.rows * factors)[:, order]) for t in first.tables)
            first = replace(
                first,
                bias=(first.bias * factors)[order],
                slopes=(first.slopes * factors[:, None])[order],
                tables=tables,
            )
        else:
            previous = layers[index - 1]
            layers[index - 1] = Affine(
                (previous.weight * factors[:, None])[order], (previous.bias * factors)[order]
            )
        layers[index] = Affine((layers[index].weight / factors)[:, order], layers[index].bias)
        if activation.width > 1:
            activations[index] = Activation(
                activation.name,
                activation.breaks[:, order],
                activation.slopes[:, order],
                activation.intercepts[:, order],
            )
    return replace(network, first=first, layers=tuple(layers), activations=tuple(activations))
