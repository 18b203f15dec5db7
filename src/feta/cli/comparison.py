"""Comparison: people put to the user's own model, beside what FETA read; a model read wrongly shows here."""

from dataclasses import dataclass

import numpy as np

from feta.arrays import Flags, Matrix
from feta.cli.open_model import Opened
from feta.errors import NetworkError
from feta.network.points import Rows
from feta.rule import Tolerance
from feta.space.draw import draw_people

# People put to the model's own runtime.
REPLAYED_PEOPLE = 1000


@dataclass(frozen=True, slots=True, eq=False)
class Replayed:
    """People put to the user's own model: how many, how many decided otherwise, how many surely so."""

    people: int
    different: int
    surprising: int  # different, though FETA is sure that rounding cannot explain it
    gap: float | None = None  # how far its scores or probabilities are from FETA's at most


def drawn_from(opened: Opened) -> Matrix:
    """Draw people from all who can exist."""
    return draw_people(opened.model.space, np.random.default_rng(0), REPLAYED_PEOPLE)


def replayed(opened: Opened, people: Matrix) -> Replayed | None:
    """Compare decisions, or scores for regression; None where the model's runtime is not at hand."""
    if opened.replay is None:
        return None
    model = opened.model
    theirs = np.asarray(opened.replay(people))
    gap = None if opened.gap is None else opened.gap(people)
    points = Rows(model.exact, people)
    if isinstance(model.rule, Tolerance):
        scores = model.runtime_scores(points)
        off = np.abs(scores.values[:, 0] - theirs)
        far: Flags = off > scores.errors[:, 0]
        return Replayed(len(people), int(far.sum()), int(far.sum()), gap)
    settled = model.settle(points, model.rule)
    different = settled.decisions != theirs.astype(settled.decisions.dtype)
    surprising = int((different & settled.safe).sum())
    return Replayed(len(people), int(different.sum()), surprising, gap)


def contradiction(opened: Opened, found: Replayed) -> str:
    """Say that the model itself decides otherwise than FETA does."""
    return f"{opened.runtime} decides {found.surprising:,} of {found.people:,} people otherwise than FETA, beyond rounding; do the columns' order, center, scale and threshold fit the model?"


def check_reading(opened: Opened) -> None:
    """Refuse to answer for a model that itself decides otherwise."""
    found = replayed(opened, drawn_from(opened))
    if found is not None and found.surprising:
        raise NetworkError(f"{contradiction(opened, found)} feta doctor says more")
