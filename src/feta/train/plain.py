"""Plain training: Adam over a grid of learning rates and batch sizes, chosen on people held out.

Folds and learning rates are trained side by side, as members of one stack.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from feta.arrays import Counts, Matrix, Vector
from feta.errors import SchemaError, one_of
from feta.rule import Rule, Threshold
from feta.scorer.network.activation import NAMED, Activation
from feta.scorer.network.network import Columns, Network
from feta.space.feature_space import FeatureSpace
from feta.train.checkpoint_file import Checkpoint
from feta.train.ensemble_members import Members, Tried
from feta.train.ensemble_stack import Shape, one_thread
from feta.train.scaling import Scaling
from feta.train.split import Split
from feta.train.subset import Subset
from feta.train.task import Task

# Told the share of the work that is done.
Progress = Callable[[float], None]


@dataclass(frozen=True, slots=True, eq=False)
class PlainRun:
    """A trained network in people's own units, and what it was chosen from."""

    network: Network
    learning_rate: float
    batch_size: int
    epoch: int  # counted from 1
    loss: float  # on the people held out
    grid: tuple[tuple[float, int, int, float], ...]  # learning rate, batch size, epoch, loss


@dataclass(frozen=True)
class PlainTrainer:
    """Trains a network for its rule, and nothing else.

    `epoch` "best" takes the epoch with the least loss on the people held out, "last" the last one.
    A blind network does not read the sensitive columns at all. With a `sample_fraction`, each epoch
    goes over that share of the people, drawn afresh each time or fixed.
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

    def __post_init__(self) -> None:
        check_whole("epochs", self.epochs)
        check_fraction("sample_fraction", self.sample_fraction)
        if self.epoch not in ("best", "last"):
            raise SchemaError(f"epoch must be {one_of(self.epoch, ('best', 'last'))}")
        if self.subset not in ("fresh", "fixed"):
            raise SchemaError(f"subset must be {one_of(self.subset, ('fresh', 'fixed'))}")
        if not self.learning_rates or not all(rate > 0 for rate in self.learning_rates):
            raise SchemaError(f"learning rates must be above 0, got {self.learning_rates!r}")
        for size in self.batch_sizes or (0,):
            check_whole("a batch size", size)
        for width in self.hidden:
            check_whole("a hidden layer's width", width)
        if not isinstance(NAMED.get(self.activation, lambda: None)(), Activation):
            known = [name for name, make in NAMED.items() if isinstance(make(), Activation)]
            raise SchemaError(f"an activation to train must be {one_of(self.activation, known)}")
        Task(self.rule)

    @cached_property
    def columns(self) -> Counts:
        """The columns the network reads."""
        read = ~self.space.sensitive_columns if self.blind else np.ones(self.space.width, bool)
        if not read.any():
            raise SchemaError("a blind network needs a column that is not sensitive, got none")
        return np.flatnonzero(read)

    @cached_property
    def shape(self) -> Shape:
        """The network's shape."""
        bend = NAMED[self.activation]()
        assert isinstance(bend, Activation)
        widths = (len(self.columns), *self.hidden, self.rule.outputs)
        return Shape(widths, (bend,) * len(self.hidden))

    def train(
        self,
        people: Matrix,
        labels: ArrayLike,
        *,
        validation: tuple[Matrix, ArrayLike] | None = None,
        checkpoint: str | Path | None = None,
        progress: Progress | None = None,
    ) -> PlainRun:
        """Train on one set of people; without a validation set a tenth is held out."""
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
        """Train on several splits of people side by side, one network each."""
        found = []
        with one_thread():
            for index, size in enumerate(self.batch_sizes):

                def tell(share: float, index: int = index) -> None:
                    if progress is not None:
                        progress((index + share) / len(self.batch_sizes))

                file = self._checkpoint(checkpoint, size, splits)
                found.append(Members(self, splits, size).train(file, tell))
        return [
            self._chosen([one for grid in found for one in grid[index]], split)
            for index, split in enumerate(splits)
        ]

    def scaling(self, split: Split) -> Scaling:
        """Scale numbers by the people to learn from."""
        if not self.standardize:
            return Scaling.none(self.space)
        return Scaling.of(self.space, split.people)

    def network(self, numbers: Vector, scaling: Scaling) -> Network:
        """Fold the scaling into trained numbers; unread columns have slope 0."""

        def fold(weight: Matrix, bias: Vector) -> Columns:
            slopes = np.zeros((len(bias), self.space.width))
            slopes[:, self.columns] = weight
            return scaling.outside(slopes, bias)

        return self.shape.network(numbers, fold)

    def _checkpoint(
        self, path: str | Path | None, batch_size: int, splits: Sequence[Split]
    ) -> Checkpoint:
        """Keep each batch size's training in a file of its own."""
        if path is not None and len(self.batch_sizes) > 1:
            path = Path(path).with_stem(f"{Path(path).stem}-{batch_size}")
        settings = asdict(self) | {"space": self.space.fingerprint, "batch_size": batch_size}
        parts = [part for one in splits for part in (one.people, one.targets, one.held)]
        return Checkpoint(path, settings, *parts)

    def _chosen(self, tried: list[Tried], split: Split) -> PlainRun:
        best = min(tried, key=lambda one: one.loss)
        grid = tuple((one.learning_rate, one.batch_size, one.epoch, one.loss) for one in tried)
        network = self.network(best.numbers, self.scaling(split))
        return PlainRun(network, best.learning_rate, best.batch_size, best.epoch, best.loss, grid)


def check_whole(name: str, number: object) -> None:
    """Raise unless a setting is a whole number above 0."""
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise SchemaError(f"{name} must be a whole number above 0, got {number!r}")


def check_fraction(name: str, share: object) -> None:
    """Raise unless a setting is a share above 0."""
    if not isinstance(share, int | float) or isinstance(share, bool) or not 0 < share <= 1:
        raise SchemaError(f"{name} must be above 0 and at most 1, got {share!r}")
