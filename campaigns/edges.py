"""Campaign of extreme numbers: each result is exact, or the network is refused.

    python -m campaigns.edges [--networks 300] [--seed 0]

The kinds are neurons rescaled by 2^±30, subnormal weights, weights beyond float32, and networks
that may overflow.
"""

import argparse
import sys
import time
from collections import Counter
from dataclasses import replace

import numpy as np

import feta
from campaigns.core import disagreements
from campaigns.result import finish
from feta.model import Model
from feta.scorer.network.layers import Affine
from feta.scorer.network.network import Network
from tests.examples import rescaled
from tests.strategies import EDGES, random_case

KINDS = ("2^±30", "subnormal", "beyond float32", "overflow")


def extreme(network: Network, kind: str, rng: np.random.Generator) -> Network:
    """Make the numbers of the first and the last layer extreme."""
    if kind == "2^±30":
        return rescaled(network, rng, 30)
    factor = {"subnormal": 2.0**-1070, "beyond float32": 2.0**130, "overflow": 2.0**1010}[kind]
    first = replace(
        network.first, bias=network.first.bias * factor, slopes=network.first.slopes * factor
    )
    layers = [Affine(layer.weight * factor, layer.bias * factor) for layer in network.layers[-1:]]
    return replace(network, first=first, layers=(*network.layers[:-1], *layers))


def run(networks: int, seed: int) -> Counter[str]:
    """Check this many networks of each kind."""
    counts: Counter[str] = Counter()
    for kind in KINDS:
        for number in range(networks):
            rng = np.random.default_rng([seed, number])
            case = random_case(rng, EDGES[number % len(EDGES)])
            try:
                network = extreme(case.model.network, kind, rng)
                model = Model(case.model.space, network, case.model.rule)
            except feta.NetworkError:
                counts[f"{kind}: refused"] += 1
                continue
            for person in case.people:
                counts[f"{kind}: people"] += 1
                for name in disagreements(model, person, "exhaustive"):
                    counts[f"WRONG {kind}: {name}"] += 1
    return counts


def main() -> int:
    """Run from the command line; exit 1 on any disagreement."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--networks", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    started = time.perf_counter()
    return finish(run(options.networks, options.seed), started)


if __name__ == "__main__":
    sys.exit(main())
