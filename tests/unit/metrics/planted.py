"""Generated people with a planted proxy of known strength, and the true scores."""

import numpy as np

from feta import Categorical, FeatureSpace, Model, Network, Real
from feta.arrays import Matrix, Vector
from feta.rule import Threshold

SPACE = FeatureSpace(
    (
        Categorical("sex", ("f", "m"), sensitive=True),
        Categorical("town", ("a", "b")),
        Real("merit", -6, 6),
    )
)
EFFECT = 1.5  # of sex on the log-odds
SHARE = 0.4  # of m


def planted(strength: float, n_people: int = 2500, seed: int = 0) -> Matrix:
    """Draw people; the town equals the sex with this probability, else it is independent."""
    rng = np.random.default_rng(seed)
    sex, other = (rng.random((2, n_people)) < SHARE).astype(float)
    town = np.where(rng.random(n_people) < strength, sex, other)
    merit = np.clip(rng.normal(size=n_people), -6, 6)
    return np.stack([1 - sex, sex, 1 - town, town, merit], axis=1)


def aware_model() -> Model:
    """Return the true probability as a model: merit and sex have an effect, the town has none."""
    network = Network.from_layers([([[0.0, EFFECT, 0.0, 0.0, 1.0]], [-0.5])], sigmoid=True)
    return Model(SPACE, network, Threshold(0.0))


def blind_model() -> Model:
    """Return a model that reads no sensitive column, and takes the town instead."""
    network = Network.from_layers([([[0.0, 0.0, 0.0, EFFECT, 1.0]], [-0.5])], sigmoid=True)
    return Model(SPACE, network, Threshold(0.0))


def true_score(people: Matrix, sex: float | Vector) -> Vector:
    """Return the probability of people, if all of them had this sex."""
    return np.asarray(1 / (1 + np.exp(0.5 - people[:, 4] - EFFECT * sex)))


def blind_score(people: Matrix, strength: float) -> Vector:
    """Return P(favorable | town, merit): what a model without the sex learns from any data."""
    male = np.where(people[:, 3] == 1, strength + (1 - strength) * SHARE, (1 - strength) * SHARE)
    return np.asarray(male * true_score(people, 1.0) + (1 - male) * true_score(people, 0.0))


def draw_labels(people: Matrix, seed: int = 1) -> Vector:
    """Draw labels with the true probabilities."""
    chance = true_score(people, people[:, 1])
    return (np.random.default_rng(seed).random(len(people)) < chance).astype(float)
