"""A kind of model: how to make a small one, and what it answers itself."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from feta import Argmax, Threshold, Tolerance
from feta.arrays import Array
from feta.rule.protocol import Rule
from tests.kinds.people import AMOUNT, MIDDLE, ROWS, counterparts

Source = Any  # a model of any library, a path or a function
Predict = Callable[[pd.DataFrame], Any]  # the answer of the model itself to raw rows


@dataclass(frozen=True)
class Built:
    """A small model: what a user has, the rule, and the model's own answers under that rule."""

    source: Source  # for `feta.read_model`
    rule: Rule
    answer: Callable[[pd.DataFrame], Array]  # decisions: False and True, or class indices; scores


# A function that makes a model in a folder.
Build = Callable[[Path], Built]


@dataclass(frozen=True)
class Kind:
    """A kind of model that people have, and the packages that it needs."""

    family: str
    name: str
    build: Build
    packages: tuple[str, ...] = ()


def flat(answers: object) -> Array:
    """Return one answer per row."""
    return np.ravel(np.asarray(answers))


def two(source: Source, predict: Predict | None = None, positive: object = 1) -> Built:
    """Return a model that predicts one of two classes."""
    function = predict or source.predict
    return Built(source, Threshold(0.0), lambda frame: flat(function(frame)) == positive)


def several(source: Source, predict: Predict | None = None) -> Built:
    """Return a model that predicts one of the classes 0, 1 and 2."""
    function = predict or source.predict
    rule = Argmax(("0", "1", "2"))
    return Built(source, rule, lambda frame: flat(function(frame)).astype(int))


def value(source: Source, predict: Predict | None = None) -> Built:
    """Return a model that predicts a number; the tolerance is between two people's spans."""
    function = predict or source.predict

    def answer(frame: pd.DataFrame) -> Array:
        return flat(function(frame)).astype(np.float64)

    spans = np.sort([float(np.ptp(answer(counterparts(row)))) for row in ROWS])
    widest = int(np.argmax(np.diff(spans)))  # no span is near the tolerance
    return Built(source, Tolerance(float(spans[widest : widest + 2].mean())), answer)


def above(source: Source, predict: Predict, rule: Rule, level: float) -> Built:
    """Return a model that predicts a number, which is compared with a level."""
    return Built(source, rule, lambda frame: flat(predict(frame)) > level)


def number(source: Source, predict: Predict | None = None) -> Built:
    """Return a model that predicts merit, which is compared with its median."""
    return above(source, predict or source.predict, Threshold(MIDDLE), MIDDLE)


def amount(source: Source, predict: Predict | None = None) -> Built:
    """Return a model with a log link, whose prediction is compared with the median."""
    return above(source, predict or source.predict, Threshold.at_prediction(AMOUNT), AMOUNT)
