"""Semi-synthetic people: real columns that are not sensitive, and a planted group and proxy.

The odds of the favorable label outside the group are those of a blind network that is fitted to the
real labels. The group, the proxy and the labels are drawn.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np

from feta.arrays import Matrix, Vector
from feta.errors import SchemaError
from feta.model import Model
from feta.rule import Threshold
from feta.space.attribute import Attribute, Derived
from feta.space.feature_space import FeatureSpace
from feta.train.plain import PlainTrainer
from feta.train.split import Split
from feta.train.task import Task
from feta_paper.fold import DatasetPeople, load_people
from feta_paper.planted import Planted, space_with
from feta_paper.proxies.settings import FIRST_SEED, MeritSettings

RULE = Threshold(0.0)


@dataclass(frozen=True, eq=False)
class Merits:
    """The columns of all people of a data set that are not sensitive, and their fitted odds."""

    space: FeatureSpace  # with the group and the proxy
    rows: Matrix
    odds: Vector

    def draw(self, n_people: int, correlation: float, *, seed: int) -> tuple[Planted, Planted]:
        """Return people to train on, and as many other people to measure."""
        if 2 * n_people > len(self.rows):
            raise SchemaError(
                f"too many people: got {n_people} to train on and as many to measure; expected at "
                f"most {len(self.rows)} together, the rows of the data set"
            )
        rng = np.random.default_rng([seed, 8])
        chosen = rng.permutation(len(self.rows))[: 2 * n_people]
        trained, others = (
            Planted.among(self.rows[part], self.odds[part], correlation, rng=rng)
            for part in np.split(chosen, 2)
        )
        return trained, others


@cache
def fitted_merits(settings: MeritSettings) -> Merits:
    """Fit the odds once per process."""
    people = load_people(settings.dataset, settings.rows, FIRST_SEED)
    attributes = _decisive(people.dataset.space)
    columns = np.concatenate(
        [np.arange(people.rows.shape[1])[people.dataset.space.columns_of(a)] for a in attributes]
    )
    odds = np.clip(_fitted_scores(people, settings), -settings.limit, settings.limit)
    return Merits(space_with(attributes), people.rows[:, columns], odds + settings.intercept)


def _decisive(space: FeatureSpace) -> list[Attribute]:
    return [
        attribute
        for attribute in space.attributes
        if not isinstance(attribute, Derived) and not space.is_sensitive(attribute)
    ]


def _fitted_scores(people: DatasetPeople, settings: MeritSettings) -> Vector:
    """Return the log-odds that a blind network gives to everybody."""
    space, training = people.dataset.space, settings.training
    order = np.random.default_rng([FIRST_SEED, 9]).permutation(len(people.rows))
    fitted = order[: settings.n_fitted]
    split = Split.of(
        space, Task(RULE), people.rows[fitted], people.labels[fitted], validation=None, seed=0
    )
    trainer = PlainTrainer(
        space,
        hidden=training.hidden,
        learning_rates=training.learning_rates,
        batch_sizes=(training.batch_size,),
        epochs=training.epochs,
        blind=True,
        seed=FIRST_SEED,
    )
    network = trainer.train_folds([split])[0].network
    return Model(space, network, RULE).score(people.rows)
