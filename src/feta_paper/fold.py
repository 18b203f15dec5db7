"""Bench: one fold's people, and the networks that earlier steps have left there."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import numpy as np

from feta import datasets
from feta.arrays import Flags, Matrix
from feta.datasets.dataset import Dataset
from feta.io.model_file import load_model
from feta.rule import Threshold
from feta.scorer.network.network import Network
from feta.space.feature_space import FeatureSpace
from feta.train.plain import Progress
from feta.train.split import HELD_OUT, Split
from feta.train.task import Task
from feta_paper.protocol import FOLDS, Protocol


@dataclass(frozen=True, eq=False)
class DatasetPeople:
    """A data set's rows, encoded."""

    dataset: Dataset
    rows: Matrix
    labels: Flags

    @cached_property
    def checksum(self) -> str:
        """A sha256 of all rows and labels."""
        content = self.rows.tobytes() + self.labels.tobytes()
        return f"sha256:{hashlib.sha256(content).hexdigest()}"


@cache
def people_of(dataset: str, rows: int | None, seed: int) -> DatasetPeople:
    """Load a data set once a process; with `rows`, that many drawn by the seed."""
    found = datasets.load(dataset)
    encoded, labels = found.space.encode(found.frame), np.asarray(found.labels)
    if rows is not None and rows < len(encoded):
        drawn = np.sort(np.random.default_rng([seed, 6]).permutation(len(encoded))[:rows])
        encoded, labels = encoded[drawn], labels[drawn]
    return DatasetPeople(found, encoded, labels)


@dataclass(frozen=True, eq=False)
class Bench:
    """What a step works with."""

    protocol: Protocol
    space: FeatureSpace
    split: Split
    test: Matrix
    labels: Flags
    seed: int  # of this fold's trainings
    standardize: bool
    network: Callable[[str], Network]  # that an earlier step has trained
    known: Mapping[str, float]  # figures of the steps that this one needs
    checkpoint: Path  # where a long training keeps how far it is
    tell: Progress

    @property
    def validation(self) -> tuple[Matrix, Flags]:
        """The people to choose by."""
        return self.split.held, self.split.held_targets == 1

    @property
    def sampled(self) -> Flags:
        """Which people of the test fold the paper would look at, drawn by the fold's seed."""
        size = max(1, round(self.protocol.test_share * len(self.test)))
        drawn = np.random.default_rng([self.seed, 7]).permutation(len(self.test))
        return np.asarray(drawn < size)


def bench_of(
    protocol: Protocol,
    *,
    seed: int,
    fold: int,
    variant: str,
    folder: Path,
    checkpoint: Path,
    known: Mapping[str, float],
    tell: Progress,
) -> Bench:
    """Set up one fold; everything in it hangs on the seed and the fold, never on what ran before."""
    from sklearn.model_selection import KFold  # noqa: PLC0415 - slow to import

    people = people_of(protocol.dataset, protocol.rows, seed)
    space = people.dataset.space
    parts = list(KFold(FOLDS, shuffle=True, random_state=seed).split(people.rows))
    rest, test = parts[fold]
    shuffled = np.random.default_rng([seed, fold]).permutation(rest)
    held, learn = np.split(shuffled, [round(HELD_OUT * len(rest))])
    split = Split.of(
        space,
        Task(Threshold(0.0)),
        people.rows[learn],
        people.labels[learn],
        validation=(people.rows[held], people.labels[held]),
        seed=seed,
    )
    return Bench(
        protocol,
        space,
        split,
        people.rows[test],
        people.labels[test],
        int(np.random.SeedSequence([seed, fold]).generate_state(1)[0]),
        variant != "raw.",
        lambda name: load_model(model_path(folder, f"{variant}{name}", fold)).network,
        known,
        checkpoint,
        tell,
    )


def model_path(folder: Path, name: str, fold: int) -> Path:
    """Say where a fold's network of a name is kept."""
    return folder / "models" / f"{name}-{fold}.feta"
