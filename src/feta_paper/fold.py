"""One fold: its people, and the networks that earlier steps trained on it."""

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
    """The encoded rows of a data set."""

    dataset: Dataset
    rows: Matrix
    labels: Flags

    @cached_property
    def checksum(self) -> str:
        """The sha256 of all rows and labels."""
        content = self.rows.tobytes() + self.labels.tobytes()
        return f"sha256:{hashlib.sha256(content).hexdigest()}"


@cache
def load_people(dataset: str, rows: int | None, seed: int) -> DatasetPeople:
    """Load a data set once per process; `rows` limits it to a random sample of that size."""
    source = datasets.load(dataset)
    encoded, labels = source.space.encode(source.frame), np.asarray(source.labels)
    if rows is not None and rows < len(encoded):
        sample = np.sort(np.random.default_rng([seed, 6]).permutation(len(encoded))[:rows])
        encoded, labels = encoded[sample], labels[sample]
    return DatasetPeople(source, encoded, labels)


@dataclass(frozen=True, eq=False)
class Fold:
    """The input of a step."""

    protocol: Protocol
    space: FeatureSpace
    split: Split
    test: Matrix
    labels: Flags
    seed: int  # of all training on this fold
    standardize: bool
    network: Callable[[str], Network]  # loads a network that an earlier step trained
    known: Mapping[str, float]  # figures of the steps that this one needs
    checkpoint: Path  # where a long training stores its progress
    progress: Progress

    @property
    def validation(self) -> tuple[Matrix, Flags]:
        """People for model selection, with labels."""
        return self.split.held, self.split.held_targets == 1

    @property
    def sampled(self) -> Flags:
        """The people of the test fold that the paper would use, drawn by the fold's seed."""
        size = max(1, round(self.protocol.test_share * len(self.test)))
        order = np.random.default_rng([self.seed, 7]).permutation(len(self.test))
        return np.asarray(order < size)


def load_fold(
    protocol: Protocol,
    *,
    seed: int,
    number: int,
    variant: str,
    folder: Path,
    checkpoint: Path,
    known: Mapping[str, float],
    progress: Progress,
) -> Fold:
    """Load fold `number`; its content depends only on the seed and the number."""
    from sklearn.model_selection import KFold  # noqa: PLC0415 - slow to import

    people = load_people(protocol.dataset, protocol.rows, seed)
    space = people.dataset.space
    parts = list(KFold(FOLDS, shuffle=True, random_state=seed).split(people.rows))
    rest, test = parts[number]
    shuffled = np.random.default_rng([seed, number]).permutation(rest)
    held, learn = np.split(shuffled, [round(HELD_OUT * len(rest))])
    split = Split.of(
        space,
        Task(Threshold(0.0)),
        people.rows[learn],
        people.labels[learn],
        validation=(people.rows[held], people.labels[held]),
        seed=seed,
    )
    return Fold(
        protocol,
        space,
        split,
        people.rows[test],
        people.labels[test],
        int(np.random.SeedSequence([seed, number]).generate_state(1)[0]),
        variant != "raw.",
        lambda name: load_model(model_path(folder, f"{variant}{name}", number)).network,
        known,
        checkpoint,
        progress,
    )


def model_path(folder: Path, name: str, number: int) -> Path:
    """Return the path of the network `name` of fold `number`."""
    return folder / "models" / f"{name}-{number}.feta"
