"""Plain training: Adam over a grid of learning rates and batch sizes, with validation people.

Folds and learning rates are trained together, as members of one stack.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from feta.arrays import Counts, Matrix, Vector
from feta.errors import SchemaError, unknown_choice
from feta.rule import Rule, Threshold
from feta.rule.protocol import is_finite_number
from feta.scorer.network.layers import Columns
from feta.scorer.network.network import Network
from feta.space.feature_space import FeatureSpace
from feta.train.checkpoint_file import Checkpoint
from feta.train.ensemble_members import Members, Trial
from feta.train.ensemble_stack import Shape, one_thread
from feta.train.functions import trained_activation
from feta.train.scaling import Scaling
from feta.train.split import Split, Subset
from feta.train.task import Task

# Called with the fraction of finished work.
Progress = Callable[[float], None]


@dataclass(frozen=True, slots=True, eq=False)
class PlainRun:
    """A trained network in raw units, and the grid it was chosen from."""

    network: Network
    learning_rate: float
    batch_size: int
    epoch: int  # counted from 1
    loss: float  # on the validation people
    grid: tuple[tuple[float, int, int, float], ...]  # learning rate, batch size, epoch, loss


@dataclass(frozen=True)
class PlainTrainer:
    """Trainer of a network for its rule, without regard to fairness.

    `epoch` "best" selects the epoch with the lowest validation loss, "last" the last one. A blind
    network does not read the sensitive columns. With a `sample_fraction`, each epoch uses that
    fraction of the people, drawn "fresh" each time or "fixed".

    A `sensitive_scale` above 1 enlarges the sensitive columns during training; the network still
    takes raw units. It then attributes more to them and less to their proxies, so that a vote over
    the counterparts removes more. `weight_decay` times each parameter is added to its gradient (an
    L2 penalty); it can move effects of the sensitive columns to their proxies.
    """

    space: FeatureSpace
    hidden: tuple[int, ...] = (16, 16, 16)
    activation: str = "relu"
    rule: Rule = Threshold(0.0)  # noqa: RUF009 - frozen
    blind: bool = False
    learning_rates: tuple[float, ...] = (1e-2, 1e-3, 1e-4)
    batch_sizes: tuple[int, ...] = (64, 128)
    epochs: int = 500
    epoch: Literal["best", "last"] = "best"
    sample_fraction: float = 1.0
    subset: Subset = "fresh"
    standardize: bool = True
    seed: int = 0
    sensitive_scale: float = 1.0
    weight_decay: float = 0.0

    def __post_init__(self) -> None:
        check_positive_integer("epochs", self.epochs)
        if not is_finite_number(self.sensitive_scale) or self.sensitive_scale <= 0:
            raise SchemaError(
                f"invalid sensitive_scale: got {self.sensitive_scale!r}; expected a number above 0"
            )
        if not is_finite_number(self.weight_decay) or self.weight_decay < 0:
            raise SchemaError(
                f"invalid weight_decay: got {self.weight_decay!r}; expected a number, 0 or more"
            )
        check_fraction("sample_fraction", self.sample_fraction)
        if self.epoch not in ("best", "last"):
            raise SchemaError(f"invalid epoch: {unknown_choice(self.epoch, ('best', 'last'))}")
        if self.subset not in ("fresh", "fixed"):
            raise SchemaError(f"invalid subset: {unknown_choice(self.subset, ('fresh', 'fixed'))}")
        if not self.learning_rates or not all(rate > 0 for rate in self.learning_rates):
            raise SchemaError(
                f"invalid learning_rates: got {self.learning_rates!r}; expected numbers above 0"
            )
        for size in self.batch_sizes or (0,):
            check_positive_integer("batch size", size)
        for width in self.hidden:
            check_positive_integer("width of a hidden layer", width)
        trained_activation(self.activation)
        Task(self.rule)

    @cached_property
    def columns(self) -> Counts:
        """The columns that the network reads."""
        read = ~self.space.sensitive_columns if self.blind else np.ones(self.space.width, bool)
        if not read.any():
            raise SchemaError("a blind network needs a column that is not sensitive: got none")
        return np.flatnonzero(read)

    @cached_property
    def shape(self) -> Shape:
        """The network's shape."""
        activation = trained_activation(self.activation)
        widths = (len(self.columns), *self.hidden, self.rule.outputs)
        return Shape(widths, (activation,) * len(self.hidden))

    def train(
        self,
        people: Matrix,
        labels: ArrayLike,
        *,
        validation: tuple[Matrix, ArrayLike] | None = None,
        checkpoint: str | Path | None = None,
        progress: Progress | None = None,
    ) -> PlainRun:
        """Train on one set of people; without a validation set, hold out a tenth."""
        task = Task(self.rule)
        split = Split.of(self.space, task, people, labels, validation=validation, seed=self.seed)
        return self.train_folds([split], checkpoint=checkpoint, progress=progress)[0]

    def train_folds(
        self,
        splits: Sequence[Split],
        *,
        checkpoint: str | Path | None = None,
        progress: Progress | None = None,
    ) -> list[PlainRun]:
        """Train one network per split, all together."""
        grids = []
        with one_thread():
            for index, size in enumerate(self.batch_sizes):

                def report(share: float, index: int = index) -> None:
                    if progress is not None:
                        progress((index + share) / len(self.batch_sizes))

                file = self._checkpoint(checkpoint, size, splits)
                grids.append(Members(self, splits, size).train(file, report))
        return [
            self._choose([trial for grid in grids for trial in grid[index]], split)
            for index, split in enumerate(splits)
        ]

    def scaling(self, split: Split) -> Scaling:
        """Return the scaling of the training people."""
        scaling = Scaling.none(self.space)
        if self.standardize:
            scaling = Scaling.of(self.space, split.people)
        return scaling.enlarged(self.space.sensitive_columns, self.sensitive_scale)

    def network(self, numbers: Vector, scaling: Scaling) -> Network:
        """Return the network of trained parameters in raw units; unread columns have slope 0."""

        def fold(weight: Matrix, bias: Vector) -> Columns:
            slopes = np.zeros((len(bias), self.space.width))
            slopes[:, self.columns] = weight
            return scaling.outside(slopes, bias)

        return self.shape.network(numbers, fold)

    def _checkpoint(
        self, path: str | Path | None, batch_size: int, splits: Sequence[Split]
    ) -> Checkpoint:
        """Return the checkpoint of one batch size; each has its own file."""
        if path is not None and len(self.batch_sizes) > 1:
            path = Path(path).with_stem(f"{Path(path).stem}-{batch_size}")
        settings = asdict(self) | {"space": self.space.fingerprint, "batch_size": batch_size}
        parts = [part for split in splits for part in (split.people, split.targets, split.held)]
        return Checkpoint(path, settings, *parts)

    def _choose(self, trials: list[Trial], split: Split) -> PlainRun:
        """Return the trial with the lowest validation loss."""
        best = min(trials, key=lambda trial: trial.loss)
        grid = tuple((t.learning_rate, t.batch_size, t.epoch, t.loss) for t in trials)
        network = self.network(best.numbers, self.scaling(split))
        return PlainRun(network, best.learning_rate, best.batch_size, best.epoch, best.loss, grid)


def check_positive_integer(name: str, number: object) -> None:
    """Raise unless a setting is an integer above 0."""
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise SchemaError(f"invalid {name}: got {number!r}; expected an integer above 0")


def check_fraction(name: str, share: object) -> None:
    """Raise unless a setting is a fraction above 0."""
    if not isinstance(share, int | float) or isinstance(share, bool) or not 0 < share <= 1:
        raise SchemaError(f"invalid {name}: got {share!r}; expected a number above 0 and at most 1")
