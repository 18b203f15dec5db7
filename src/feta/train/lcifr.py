"""LCIFR: representations that hardly move with the sensitive attributes, and a robust head on them.

The baseline of Ruoss, Balunović, Fischer and Vechev (NeurIPS 2020) for attributes that may take any
value, extended to several and to numeric ones. With its latent tolerance of 0 the authors' adversary
stands still, so a random counterpart is what they train on, and what is done here; the worst case of a
linear head over a box has a closed form, which takes the place of their search for it.
"""

from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from feta.arrays import Flags, Matrix, Vector
from feta.errors import SchemaError
from feta.rule import Threshold
from feta.scorer.network.activation import identity, relu
from feta.scorer.network.network import Affine, Network
from feta.space.attribute import Categorical
from feta.space.feature_space import FeatureSpace
from feta.train.ensemble_stack import Shape, Stack, import_torch, one_thread
from feta.train.plain import Progress
from feta.train.scaling import Scaling
from feta.train.split import Split
from feta.train.task import Task

if TYPE_CHECKING:
    from torch import Tensor

# The authors widen every latent bound by this much for their solver's tolerances.
PADDING = 1e-4

# Half the learning rate after this many epochs without a loss at least a ten-thousandth lower.
PATIENCE, NOTICEABLE = 5, 1e-4


@dataclass(frozen=True, eq=False)
class LCIFRRun:
    """An encoder with its head, in people's own units."""

    space: FeatureSpace  # with the attributes sensitive that the certificate is about
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
        """Say who is certified: the head is of one sign on the box around all latent counterparts.

        Sound but not complete: the box is larger than what the counterparts reach.
        """
        head = self.network.layers[-1]
        weight = float(np.abs(head.weight).sum())
        found = np.zeros(len(people), dtype=bool)
        for row, person in enumerate(people):
            own = self.encoder(person[None, :])
            blocks = self.space.lattice.counterparts(person)
            radius = max(float(np.abs(self.encoder(block) - own).max()) for block in blocks)
            score = float((own @ head.weight.T + head.bias)[0, 0])
            found[row] = abs(score) > (radius + PADDING) * weight
        return found


@dataclass(frozen=True)
class LCIFRTrainer:
    """Trains an encoder, then a linear head; `attributes` may vary, by default the categorical ones."""

    space: FeatureSpace
    _: KW_ONLY
    attributes: tuple[str, ...] | None = None
    gamma: float = 10.0
    delta: float = 0.0  # how far counterparts may lie apart in the latent space for nothing
    radius: float = 0.01  # what the head is made robust to
    encoder: tuple[int, ...] = (20, 20)
    learning_rate: float = 1e-3
    weight_decay: float = 0.01
    batch_size: int = 256
    epochs: int = 100
    seed: int = 0

    @cached_property
    def varied(self) -> FeatureSpace:
        """The space with just those attributes sensitive that vary."""
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
        """Train both parts; without a validation set a tenth is held out for the learning rate."""
        task = Task(Threshold(0.0))
        split = Split.of(self.space, task, people, labels, validation=validation, seed=self.seed)
        with one_thread():
            network = _Training(self, task, split).run(progress or (lambda _: None))
        return LCIFRRun(self.varied, network, self.gamma)


class _Training:
    """The two trainings; mutable, and gone when they are done."""

    def __init__(self, trainer: LCIFRTrainer, task: Task, split: Split) -> None:
        torch = import_torch()
        self.trainer, self.task, self.split = trainer, task, split
        self.scaling = Scaling.of(trainer.space, split.people)
        self.random = np.random.default_rng([trainer.seed, 5])
        hidden = (relu(),) * (len(trainer.encoder) - 1)
        self.shape = Shape((trainer.space.width, *trainer.encoder, 1), (*hidden, identity()))
        self.people, self.held = (
            torch.tensor(self.scaling(one))[None] for one in (split.people, split.held)
        )
        # Drawn once: a loss that jumps with its counterparts would halve the learning rate for nothing.
        self.held_others = self._others(split.held)
        self.targets, self.held_targets = (
            torch.tensor(one) for one in (split.targets, split.held_targets)
        )

    def run(self, tell: Progress) -> Network:
        """Train encoder and head, one after the other, and put them together."""
        torch, trainer = import_torch(), self.trainer
        whole = self._stack(self.shape)
        self._fit(whole, self._apart, lambda share: tell(share / 2))
        with torch.no_grad():
            self.people, self.held = (whole.layers(one)[-2] for one in (self.people, self.held))
        head = self._stack(Shape((trainer.encoder[-1], 1), ()))
        self._fit(head, self._robust, lambda share: tell(0.5 + share / 2))
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

    def _apart(self, stack: Stack, rows: Vector | None) -> "Tensor":
        """Give the producer's loss: the label's, and how far a random counterpart's latent lies."""
        torch, trainer, split = import_torch(), self.trainer, self.split
        people = split.held if rows is None else split.people[rows]
        others = self.held_others if rows is None else self._others(people)
        both = torch.tensor(self.scaling(np.concatenate([people, others])))[None]
        *_, latent, scores = stack.layers(both)
        mine, theirs = latent[:, : len(people)], latent[:, len(people) :]
        distance = (mine - theirs).abs().amax(-1)
        targets = self.held_targets if rows is None else self.targets[rows]
        losses = self.task.losses(scores[:, : len(people)], targets)
        return (losses + trainer.gamma * torch.relu(distance - trainer.delta)).mean(-1)

    def _others(self, people: Matrix) -> Matrix:
        """Give each person a random counterpart."""
        lattice = self.trainer.varied.lattice
        return lattice.moved(people, self.random.integers(0, lattice.size, len(people)))

    def _robust(self, stack: Stack, rows: Vector | None) -> "Tensor":
        """Give the consumer's loss, at the worst point of the box around each latent."""
        people = self.held if rows is None else self.people[:, rows]
        targets = self.held_targets if rows is None else self.targets[rows]
        reach = self.trainer.radius * stack.numbers[:, :-1].abs().sum(-1)
        worst = stack.scores(people)[..., 0] - (2 * targets - 1) * reach[:, None]
        return self.task.losses(worst[..., None], targets).mean(-1)

    def _fit(self, stack: Stack, loss, tell: Progress) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001 - one of the two above
        torch, trainer = import_torch(), self.trainer
        least, waited = np.inf, 0
        for epoch in range(trainer.epochs):
            order = self.random.permutation(len(self.split.people))
            for start in range(0, len(order), trainer.batch_size):
                stack.step(loss(stack, order[start : start + trainer.batch_size]))
            with torch.no_grad():
                held = float(loss(stack, None))
            waited = 0 if held < least * (1 - NOTICEABLE) else waited + 1
            least = min(least, held)
            if waited > PATIENCE:
                stack.rates *= 0.5
                waited = 0
            tell((epoch + 1) / trainer.epochs)
