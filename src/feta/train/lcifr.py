"""LCIFR: representations that depend little on the sensitive attributes, and a robust head.

The baseline of Ruoss, Balunović, Fischer and Vechev (NeurIPS 2020) for attributes that may take
any value, extended to several attributes and to numbers. With a latent tolerance of 0 the authors'
adversary does not move, so they train on a random counterpart, as here. The worst case of a linear
head over a box has a closed form, which replaces their search.
"""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from feta.arrays import Counts, Flags, Matrix
from feta.errors import SchemaError
from feta.relation.all_sensitive_values import AllSensitiveValues
from feta.rule import Threshold
from feta.scorer.network.activation import identity, relu
from feta.scorer.network.layers import Affine
from feta.scorer.network.network import Network
from feta.space.attribute import Categorical
from feta.space.feature_space import FeatureSpace
from feta.train.ensemble_stack import Shape, Stack, one_thread
from feta.train.import_torch import import_torch
from feta.train.plain import Progress
from feta.train.scaling import Scaling
from feta.train.split import Split
from feta.train.task import Task

if TYPE_CHECKING:
    from torch import Tensor

# The authors widen every latent bound by this, because of their solver's tolerances.
PADDING = 1e-4

# The learning rate is halved after this many epochs without a noticeably lower loss (relative).
PATIENCE, NOTICEABLE = 5, 1e-4


@dataclass(frozen=True, eq=False)
class LCIFRRun:
    """An encoder with its head, in raw units."""

    space: FeatureSpace  # sensitive are the attributes that the certificate covers
    network: Network
    gamma: float

    @cached_property
    def encoder(self) -> Network:
        """The part before the head."""
        network = self.network
        return Network(
            network.first, network.activations[:-1], network.layers[:-1], source=network.source
        )

    def certified(self, people: Matrix) -> Flags:
        """Return who is certified: the head has one sign on the box around all latent counterparts.

        Sound but not complete: the box is larger than the set of counterparts.
        """
        head = self.network.layers[-1]
        weight = float(np.abs(head.weight).sum())
        relation, certified = AllSensitiveValues(self.space), np.zeros(len(people), dtype=bool)
        for row, person in enumerate(people):
            reference = self.encoder(person[None, :])
            blocks = relation.counterparts(person)
            radius = max(float(np.abs(self.encoder(block) - reference).max()) for block in blocks)
            score = float((reference @ head.weight.T + head.bias)[0, 0])
            certified[row] = abs(score) > (radius + PADDING) * weight
        return certified


@dataclass(frozen=True)
class LCIFRTrainer:
    """Trainer of an encoder, then of a linear head.

    `attributes` are varied; by default, all categorical sensitive ones.
    """

    space: FeatureSpace
    _: KW_ONLY
    attributes: tuple[str, ...] | None = None
    gamma: float = 10.0
    delta: float = 0.0  # latent distance of counterparts without a penalty
    radius: float = 0.01  # latent perturbation that the head must withstand
    encoder: tuple[int, ...] = (20, 20)
    learning_rate: float = 1e-3
    weight_decay: float = 0.01
    batch_size: int = 256
    epochs: int = 100
    seed: int = 0

    @cached_property
    def varied(self) -> FeatureSpace:
        """The space in which exactly the varied attributes are sensitive."""
        names = self.attributes
        if names is None:
            names = tuple(a.name for a in self.space.sensitive if isinstance(a, Categorical))
        if not names:
            raise SchemaError("no sensitive attribute is categorical; name the attributes to vary")
        return self.space.with_sensitive(names)

    def train(
        self,
        people: Matrix,
        labels: ArrayLike,
        *,
        validation: tuple[Matrix, ArrayLike] | None = None,
        progress: Progress | None = None,
    ) -> LCIFRRun:
        """Train both parts; without a validation set, hold out a tenth for the learning rate."""
        task = Task(Threshold(0.0))
        split = Split.of(self.space, task, people, labels, validation=validation, seed=self.seed)
        with one_thread():
            network = _Training(self, task, split).run(progress or (lambda _: None))
        return LCIFRRun(self.varied, network, self.gamma)


class _Training:
    """The two trainings; mutable, discarded after them."""

    def __init__(self, trainer: LCIFRTrainer, task: Task, split: Split) -> None:
        torch = import_torch()
        self.trainer, self.task, self.split = trainer, task, split
        self.scaling = Scaling.of(trainer.space, split.people)
        self.random = np.random.default_rng([trainer.seed, 5])
        hidden = (relu(),) * (len(trainer.encoder) - 1)
        self.shape = Shape((trainer.space.width, *trainer.encoder, 1), (*hidden, identity()))
        self.people, self.held = (
            torch.tensor(self.scaling(rows))[None] for rows in (split.people, split.held)
        )
        # Drawn once: a loss that varies with its counterparts would halve the rate wrongly.
        self.held_counterparts = self._random_counterparts(split.held)
        self.targets, self.held_targets = (
            torch.tensor(targets) for targets in (split.targets, split.held_targets)
        )

    def run(self, report: Progress) -> Network:
        """Train the encoder, then the head, and join them."""
        torch, trainer = import_torch(), self.trainer
        whole = self._stack(self.shape)
        self._fit(whole, self._encoder_loss, lambda share: report(share / 2))
        with torch.no_grad():
            self.people, self.held = (whole.layers(rows)[-2] for rows in (self.people, self.held))
        head = self._stack(Shape((trainer.encoder[-1], 1), ()))
        self._fit(head, self._head_loss, lambda share: report(0.5 + share / 2))
        encoder = self.shape.network(whole.rows()[0], self.scaling.outside)
        ((weight, bias),) = head.shape.layers(head.rows()[0])
        return Network(
            encoder.first,
            encoder.activations,
            (*encoder.layers[:-1], Affine(weight, bias)),
            source="float64",
        )

    def _stack(self, shape: Shape) -> Stack:
        trainer = self.trainer
        start = shape.initial(self.random)
        return Stack(shape, [start], [trainer.learning_rate], weight_decay=trainer.weight_decay)

    def _encoder_loss(self, stack: Stack, rows: Counts | None) -> "Tensor":
        """Compute the encoder's loss: of the label, and the distance of a random counterpart."""
        torch, trainer, split = import_torch(), self.trainer, self.split
        people = split.held if rows is None else split.people[rows]
        counterparts = self.held_counterparts if rows is None else self._random_counterparts(people)
        both = torch.tensor(self.scaling(np.concatenate([people, counterparts])))[None]
        *_, latent, scores = stack.layers(both)
        latent_people, latent_counterparts = latent[:, : len(people)], latent[:, len(people) :]
        distance = (latent_people - latent_counterparts).abs().amax(-1)
        targets = self.held_targets if rows is None else self.targets[rows]
        losses = self.task.losses(scores[:, : len(people)], targets)
        return (losses + trainer.gamma * torch.relu(distance - trainer.delta)).mean(-1)

    def _random_counterparts(self, people: Matrix) -> Matrix:
        """Draw one counterpart per person."""
        lattice = self.trainer.varied.lattice
        return lattice.moved(people, self.random.integers(0, lattice.size, len(people)))

    def _head_loss(self, stack: Stack, rows: Counts | None) -> "Tensor":
        """Compute the head's loss at the worst point of the box around each latent."""
        people = self.held if rows is None else self.people[:, rows]
        targets = self.held_targets if rows is None else self.targets[rows]
        radius = self.trainer.radius * stack.numbers[:, :-1].abs().sum(-1)
        worst = stack.scores(people)[..., 0] - (2 * targets - 1) * radius[:, None]
        return self.task.losses(worst[..., None], targets).mean(-1)

    def _fit(
        self, stack: Stack, loss: Callable[[Stack, Counts | None], "Tensor"], report: Progress
    ) -> None:
        torch, trainer = import_torch(), self.trainer
        lowest, n_waited = np.inf, 0
        for epoch in range(trainer.epochs):
            order = self.random.permutation(len(self.split.people))
            for start in range(0, len(order), trainer.batch_size):
                stack.step(loss(stack, order[start : start + trainer.batch_size]))
            with torch.no_grad():
                held = float(loss(stack, None))
            n_waited = 0 if held < lowest * (1 - NOTICEABLE) else n_waited + 1
            lowest = min(lowest, held)
            if n_waited > PATIENCE:
                stack.rates *= 0.5
                n_waited = 0
            report((epoch + 1) / trainer.epochs)
