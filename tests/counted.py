"""Functions that a user might bring, good and bad, and fairness by brute force over raw records."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from feta import Categorical, FeatureSpace, Integer
from feta.scorer.counted.options import CountingOptions
from feta.space.attribute import Attribute

Record = dict[str, Any]
Function = Callable[[pd.DataFrame], Any]

SPACE = FeatureSpace(
    (
        Integer("age", 18, 29, sensitive=True),
        Categorical("sex", ("female", "male"), sensitive=True),
        Integer("income", 0, 40),
        Categorical("housing", ("own", "rent")),
    )
)

# A fixed batch and no time limit, so that tests do not depend on the speed of the machine.
OPTIONS = CountingOptions(batch=13, timeout=None)


def people(n_people: int = 12, seed: int = 3) -> list[Record]:
    """Draw records."""
    rng = np.random.default_rng(seed)
    return [
        {
            "age": int(rng.integers(18, 30)),
            "sex": str(rng.choice(["female", "male"])),
            "income": int(rng.integers(0, 41)),
            "housing": str(rng.choice(["own", "rent"])),
        }
        for _ in range(n_people)
    ]


def values_of(attribute: Attribute) -> list[Any]:
    """List the raw values of a finite attribute."""
    match attribute:
        case Integer(low=low, high=high):
            return list(range(int(low), int(high) + 1))
        case Categorical(values=values):
            return list(values)
    raise AssertionError(attribute)


def counterparts(space: FeatureSpace, record: Record) -> list[Record]:
    """List all raw counterparts of a record, from the attributes alone."""
    sensitive = [attribute for attribute in space.attributes if space.is_sensitive(attribute)]
    return [
        record | dict(zip([attribute.name for attribute in sensitive], values, strict=True))
        for values in product(*(values_of(attribute) for attribute in sensitive))
    ]


def brute_force(decide: Function, space: FeatureSpace, record: Record) -> list[Any]:
    """Decide every counterpart, in one call."""
    answers = np.asarray(decide(pd.DataFrame(counterparts(space, record))))
    return list(answers.reshape(-1))


def merit(frame: pd.DataFrame) -> np.ndarray:
    """Score people: income, some age, and a bonus; in eighths, so that ties occur."""
    bonus = (frame["sex"] == "male").to_numpy() * 4.0 - (frame["housing"] == "rent") * 2.0
    return np.asarray((frame["income"] * 8 + (frame["age"] - 18) * 7 + bonus * 8) / 8 - 20)


def approve(frame: pd.DataFrame) -> np.ndarray:
    """Decide by merit."""
    return merit(frame) > 0


@dataclass
class Random:
    """A function that ignores its input; sometimes only."""

    share: float = 1.0
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(5))

    def __call__(self, frame: pd.DataFrame) -> np.ndarray:
        noise = self.rng.normal(size=len(frame)) * 50
        return np.where(self.rng.random(len(frame)) < self.share, noise, merit(frame))


@dataclass
class Drifting:
    """A function with state: every call moves its scores."""

    calls: int = 0

    def __call__(self, frame: pd.DataFrame) -> np.ndarray:
        self.calls += 1
        return merit(frame) + self.calls


def centered(frame: pd.DataFrame) -> np.ndarray:
    """Score relative to the batch."""
    scores = merit(frame)
    return scores - scores.mean()


@dataclass
class Replaced:
    """A function that becomes another one after some rows."""

    after: int
    rows: int = 0

    def __call__(self, frame: pd.DataFrame) -> np.ndarray:
        self.rows += len(frame)
        return merit(frame) if self.rows <= self.after else 30 - merit(frame)


@dataclass
class Rounding:
    """A function whose last bits depend on the size of the batch, as those of BLAS do."""

    relative: float = 1e-14

    def __call__(self, frame: pd.DataFrame) -> np.ndarray:
        return merit(frame) * (1 + self.relative * (len(frame) % 3))


@dataclass
class Hanging:
    """A function that hangs after some calls, until it is released."""

    after: int
    calls: int = 0
    release: threading.Event = field(default_factory=threading.Event)

    def __call__(self, frame: pd.DataFrame) -> np.ndarray:
        self.calls += 1
        if self.calls > self.after:
            self.release.wait(60)
        return merit(frame)


@dataclass
class Broken:
    """A function that fails on people of one age, in one of several ways."""

    way: str
    age: int = 25

    def __call__(self, frame: pd.DataFrame) -> object:
        bad = (frame["age"] == self.age).to_numpy()
        scores = merit(frame)
        match self.way:
            case "raises" if bad.any():
                raise KeyError(f"no table for age {self.age}")
            case "nan":
                return np.where(bad, np.nan, scores)
            case "infinite":
                return np.where(bad, np.inf, scores)
            case "length" if bad.any():
                return scores[:-1]
            case "text":
                return ["?" if flag else score for flag, score in zip(bad, scores, strict=True)]
            case "label":
                labels = np.where(scores > 0, "yes", "no").astype(object)
                labels[bad] = "maybe"
                return labels
        return scores


@dataclass
class Counting:
    """A function that records the rows of each call."""

    function: Function
    batches: list[pd.DataFrame] = field(default_factory=list)

    def __call__(self, frame: pd.DataFrame) -> object:
        self.batches.append(frame)
        return self.function(frame)

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        """All rows so far."""
        return [tuple(row) for batch in self.batches for row in batch.itertuples(index=False)]


def with_two_columns(function: Function) -> Function:
    """Return the scores of two classes, the first of which is always 0."""

    def scores(frame: pd.DataFrame) -> np.ndarray:
        return np.stack([np.zeros(len(frame)), function(frame)], axis=1)

    return scores
