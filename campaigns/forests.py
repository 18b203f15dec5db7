"""Campaign of tree ensembles against the exact oracle, and against the libraries that train them.

    python -m campaigns.forests [--models 2000] [--seed 0] [--library-share 0.1] [--follow]

Random ensembles have numeric cuts, sets of values, missing directions, weights, means and several
outputs; a third are at the edge. Both engines answer: verdicts, worst gaps, counts, spreads, fair
decisions and labels. The checker proves every verdict, and must reject it with one counterpart
fewer or more. A share of the models is trained by a library on random data, and compared with its
own predictions for whole lattices. With `--follow`, the kernel follows trees, as it does for very
large ensembles, instead of intersecting sets of leaves.
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator

import numpy as np

import feta
from campaigns.forest_answers import disagreements, engines_of
from campaigns.forest_libraries import check_library
from campaigns.result import finish
from feta.scorer.forest import kernel
from tests.forest_cases import ForestCase, random_case
from tests.strategies import EDGES


def describe(case: ForestCase) -> Iterator[str]:
    """Name the kinds of a case."""
    ensemble, model = case.ensemble, case.model
    yield f"rule {type(model.rule).__name__}"
    yield f"edge {case.edge}"
    yield f"leaf values: {case.values}"
    yield f"sums in {ensemble.kind}"
    yield from ["with vote weights"] * (case.weights is not None)
    yield from ["weighted trees"] * (ensemble.weights is not None)
    yield from ["means"] * (ensemble.denominator > 1)
    yield from ["differences of two classes"] * (len(ensemble.base) > model.rule.outputs)
    missing = any(getattr(attribute, "missing", False) for attribute in model.space.sensitive)
    yield from ["missing sensitive values"] * missing
    yield from (f"models answered by {engine}" for engine in engines_of(case))
    for record in case.records:
        answers = case.answers(record)
        yield "fair people" if answers.fair else "unfair people"
        if isinstance(model.rule, feta.Threshold):
            tie = any(score[0] == model.rule.value for score in answers.scores)
            yield from ["people with a counterpart on the threshold"] * tie


def check_random(rng: np.random.Generator, number: int, counts: Counter[str]) -> list[str]:
    """Draw a model, and name what the oracle contradicts."""
    case = random_case(rng, EDGES[number % len(EDGES)])
    counts.update(describe(case))
    return list(disagreements(case, rng))


def run(models: int, seed: int, library_share: float) -> Counter[str]:
    """Check this many models; count cases by kind and disagreements by name."""
    counts: Counter[str] = Counter()
    for number in range(models):
        rng = np.random.default_rng([seed, number])
        library = int((number + 1) * library_share) > int(number * library_share)
        try:
            wrong = check_library(rng, counts) if library else check_random(rng, number, counts)
        except feta.FetaError as error:
            wrong = [f"error: {type(error).__name__}: {error}"[:200]]
        for name in wrong:
            counts[f"WRONG {name}"] += 1
            print(f"model {number} (seed {seed}): {name}", file=sys.stderr)
    return counts


def main() -> int:
    """Run from the command line; exit 1 on any disagreement."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--library-share", type=float, default=0.1)
    parser.add_argument("--follow", action="store_true", help="keep no sets of leaves")
    options = parser.parse_args()
    if options.follow:
        kernel.MAX_SET_BYTES = 0
    started = time.perf_counter()
    return finish(run(options.models, options.seed, options.library_share), started)


if __name__ == "__main__":
    sys.exit(main())
