"""Networks of one shape that are trained together, all parameters in one tensor.

The cost of a step on small networks is calls, not arithmetic, so ten members take little more
time than one.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from feta.arrays import Matrix, Vector
from feta.errors import NetworkError
from feta.scorer.network.activation import Activation
from feta.scorer.network.layers import Affine, Columns
from feta.scorer.network.network import Network
from feta.scorer.network.smooth.activation import Smooth
from feta.train.functions import torch_activation
from feta.train.import_torch import import_torch

if TYPE_CHECKING:
    from torch import Tensor

# Adam's usual constants.
MOMENTUM, MEMORY, EPSILON = 0.9, 0.999, 1e-8


@dataclass(frozen=True, eq=False)
class Shape:
    """Layer widths from the inputs to the scores, and the activations between them."""

    widths: tuple[int, ...]
    activations: tuple[Activation | Smooth, ...]

    @classmethod
    def of(cls, network: Network) -> "Shape":
        """Return the shape of a network."""
        if network.first.tables:
            raise NetworkError("a network with tables cannot be trained; train it on raw columns")
        inner = [len(layer.bias) for layer in network.layers]
        return cls((network.width, network.first.outputs, *inner), network.activations)

    @property
    def sizes(self) -> list[tuple[int, int]]:
        """Outputs and inputs of each layer."""
        return list(zip(self.widths[1:], self.widths, strict=False))

    @property
    def length(self) -> int:
        """The number of parameters."""
        return sum(outputs * (inputs + 1) for outputs, inputs in self.sizes)

    def initial(self, rng: np.random.Generator) -> Vector:
        """Draw parameters as torch does: uniformly within ±1 / √inputs."""
        parts = [
            rng.uniform(-1, 1, outputs * (inputs + 1)) / np.sqrt(inputs)
            for outputs, inputs in self.sizes
        ]
        return np.concatenate(parts)

    def flat(self, network: Network) -> Vector:
        """Return the parameters of a network as one row."""
        pairs = [(network.first.slopes, network.first.bias)]
        pairs += [(layer.weight, layer.bias) for layer in network.layers]
        return np.concatenate([part.ravel() for pair in pairs for part in pair])

    def layers(self, numbers: Vector) -> list[tuple[Matrix, Vector]]:
        """Split a row of parameters into weights and biases."""
        layers, start = [], 0
        for outputs, inputs in self.sizes:
            middle, stop = start + outputs * inputs, start + outputs * (inputs + 1)
            layers.append((numbers[start:middle].reshape(outputs, inputs), numbers[middle:stop]))
            start = stop
        return layers

    def network(
        self,
        numbers: Vector,
        fold: Callable[[Matrix, Vector], Columns] = lambda w, b: Columns(b, w),
    ) -> Network:
        """Return the network of a row of parameters; `fold` makes its first layer."""
        if not np.isfinite(numbers).all():
            raise NetworkError(
                "the training diverged: got weights that are not finite; lower the learning rate"
            )
        (weight, bias), *rest = self.layers(numbers)
        inner = tuple(Affine(weight, bias) for weight, bias in rest)
        return Network(fold(weight, bias), self.activations, inner, source="float64")


class Stack:
    """Parameters of the members, and the state of Adam."""

    def __init__(
        self,
        shape: Shape,
        numbers: Sequence[Vector],
        learning_rates: Sequence[float],
        *,
        weight_decay: float = 0.0,
    ) -> None:
        torch = import_torch()
        self.shape, self.weight_decay = shape, weight_decay
        self.numbers: Tensor = torch.tensor(np.array(numbers), requires_grad=True)
        self.rates: Tensor = torch.tensor(np.array(learning_rates, dtype=np.float64))[:, None]
        self.mean, self.square = torch.zeros_like(self.numbers), torch.zeros_like(self.numbers)
        self.steps = 0
        self._activations = [torch_activation(one) for one in shape.activations]

    def scores(self, people: "Tensor") -> "Tensor":
        """Score people, (members or 1, people, columns), as (members, people, outputs)."""
        return self.layers(people)[-1]

    def layers(self, people: "Tensor") -> "list[Tensor]":
        """Compute the values of each layer before its activation; the scores come last."""
        torch = import_torch()
        n_members = len(self.numbers)
        values, start, outputs_by_layer = people.expand(n_members, -1, -1), 0, []
        for index, (outputs, inputs) in enumerate(self.shape.sizes):
            middle, stop = start + outputs * inputs, start + outputs * (inputs + 1)
            weight = self.numbers[:, start:middle].view(n_members, outputs, inputs)
            bias = self.numbers[:, None, middle:stop]
            values = torch.baddbmm(bias, values, weight.transpose(1, 2))
            outputs_by_layer.append(values)
            if index < len(self._activations):
                values = self._activations[index](values)
            start = stop
        return outputs_by_layer

    def step(self, losses: "Tensor") -> None:
        """Take one step of Adam down each member's loss, (members,)."""
        torch = import_torch()
        (gradient,) = torch.autograd.grad(losses.sum(), self.numbers)
        self.steps += 1
        with torch.no_grad():
            if self.weight_decay:
                gradient = gradient + self.weight_decay * self.numbers
            self.mean.lerp_(gradient, 1 - MOMENTUM)
            self.square.mul_(MEMORY).addcmul_(gradient, gradient, value=1 - MEMORY)
            deviation = (self.square / (1 - MEMORY**self.steps)).sqrt_().add_(EPSILON)
            self.numbers -= self.rates / (1 - MOMENTUM**self.steps) * self.mean / deviation

    def rows(self) -> Matrix:
        """Return a copy of the parameters, one row per member."""
        return np.array(self.numbers.detach().numpy())

    def state(self) -> dict[str, Matrix]:
        """Return what a resumed training needs."""
        return {
            "numbers": self.rows(),
            "mean": np.array(self.mean.numpy()),
            "square": np.array(self.square.numpy()),
            "rates": np.array(self.rates.numpy()),
            "steps": np.array([float(self.steps)]),
        }

    def restore(self, state: dict[str, Matrix]) -> None:
        """Restore the state of an interrupted training."""
        torch = import_torch()
        with torch.no_grad():
            for name in ("numbers", "mean", "square", "rates"):
                getattr(self, name).copy_(torch.tensor(state[name]))
        self.steps = int(state["steps"][0])


@contextmanager
def one_thread() -> Iterator[None]:
    """Use one torch thread: results are reproducible, and small networks gain from no more."""
    torch = import_torch()
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
