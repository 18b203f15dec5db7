"""Ways: the vote as one would write it without FETA, and a clock for all of them."""

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from feta.arrays import Matrix, Vector
from feta.model import Model
from feta.rule import Threshold
from feta.train.ensemble_stack import import_torch

Singles = NDArray[np.float32]

TRIES = 5

# A try is repeated until it lasts this long, so that the clock's own steps do not show.
SHORTEST = 0.02

# Counterparts that a loop is timed on, taken for all.
SOME_COUNTERPARTS = 50

# Counterparts scored at a time in numpy: 2^12 points of 16 neurons stay in the cache.
BLOCK = 2**12


def cost(
    work: Callable[[], object],
    *,
    clock: Callable[[], float] = time.process_time,
    patience: float = 10.0,
) -> float:
    """Measure seconds of some work, after a call that is not counted: the best of five tries.

    Neighbors on the machine only ever add to it. Tries end early when they have taken longer than
    `patience` together, in seconds.
    """
    begun = time.monotonic()
    work()
    started = clock()
    work()
    best = clock() - started
    times = max(1, math.ceil(SHORTEST / max(best, 1e-9)))
    for _ in range(TRIES if times > 1 else TRIES - 1):  # a long try has been made already
        if time.monotonic() - begun > patience:
            break
        started = clock()
        for _ in range(times):
            work()
        best = min(best, (clock() - started) / times)
    return best


def in_numpy(model: Model) -> list[tuple[Singles, Singles]]:
    """Give weights and biases in float32, as torch would hold them."""
    first = model.network.first
    assert not first.tables  # those of trained networks have none
    layers = [(first.slopes, first.bias)]
    layers += [(layer.weight, layer.bias) for layer in model.network.layers]
    return [(w.astype(np.float32), b.astype(np.float32)) for w, b in layers]


def in_torch(model: Model) -> Callable[..., Any]:
    """Build the network in torch; what comes back is called with a tensor of float32 rows."""
    torch = import_torch()
    parts = []
    for weight, bias in in_numpy(model):
        linear = torch.nn.Linear(weight.shape[1], weight.shape[0])
        linear.weight = torch.nn.Parameter(torch.from_numpy(weight.copy()))
        linear.bias = torch.nn.Parameter(torch.from_numpy(bias.copy()))
        parts += [linear, torch.nn.ReLU()]
    network = torch.nn.Sequential(*parts[:-1]).eval()

    def forward(rows: Any) -> Any:  # noqa: ANN401 - tensors
        with torch.inference_mode():
            return network(rows)

    return forward


def forward_seconds(model: Model, people: Matrix) -> float:
    """Time torch's forward pass, a person; of a single row it is the unit of every ratio."""
    rows, forward = import_torch().from_numpy(people.astype(np.float32)), in_torch(model)
    return cost(lambda: forward(rows)) / len(people)


def naive_seconds(model: Model, person: Vector, most: int = SOME_COUNTERPARTS) -> float:
    """Time the vote written as a loop, a forward pass a counterpart; timed on `most`, taken for all.

    The counterparts' rows are made before: how a lattice is walked is not what is timed.
    """
    torch, forward, lattice = import_torch(), in_torch(model), model.space.lattice
    assert isinstance(model.rule, Threshold)
    threshold, some = model.rule.value, next(lattice.counterparts(person))[:most]
    rows = torch.from_numpy(some.astype(np.float32)).split(1)

    def loop() -> int:
        return sum(bool(forward(row) >= threshold) for row in rows)

    return cost(loop) / len(rows) * lattice.size


def vectorized(model: Model) -> Callable[[Vector], bool]:
    """Write the vote as one would in numpy; what the sensitive columns add is computed once."""
    assert isinstance(model.rule, Threshold)
    threshold, lattice = model.rule.value, model.space.lattice
    (slopes, bias), *rest = in_numpy(model)
    columns = list(lattice.columns)
    others = [one for one in range(model.space.width) if one not in columns]
    blocks: list[Singles] = [
        (lattice.codes(start, min(start + BLOCK, lattice.size)) @ slopes[:, columns].T).astype("f4")
        for start in range(0, lattice.size, BLOCK)
    ]

    def vote(person: Vector) -> bool:
        constant = slopes[:, others] @ person[others].astype(np.float32) + bias
        favorable = 0
        for block in blocks:
            value = block + constant
            for weight, offset in rest:
                value = np.maximum(value, 0) @ weight.T + offset
            favorable += int((value >= threshold).sum())
        return 2 * favorable >= lattice.size

    return vote
