"""Logistic regression of groups on columns, with a penalty, and probabilities for other people."""

import numpy as np

from feta.arrays import Counts, Flags, Matrix, Vector

# Penalties on squared slopes of scaled columns; other people decide which one is used.
PENALTIES = (10.0, 1.0, 0.1)

# People are divided into this many parts; each part gets the probabilities fitted to the others.
N_FOLDS = 5

MAX_STEPS = 25

# A step that increases the loss is halved, down to this.
SMALLEST_STEP = 1e-4

# The fit ends when nobody's log-odds change by more than this in one step.
TOLERANCE = 1e-3

# The constant column is nearly free; exactly free, a group without people would have no fit.
CONSTANT_PENALTY = 1e-3


def fit_softmax(columns: Matrix, groups: Counts, penalty: float, *, start: Matrix) -> Matrix:
    """Fit slopes, (columns, groups), of the probabilities of groups, by Newton's method."""
    targets = np.eye(start.shape[1])[groups]
    penalties = np.full((columns.shape[1], 1), penalty)
    penalties[0] = CONSTANT_PENALTY

    def loss(slopes: Matrix) -> float:
        fit = log_loss(softmax(columns @ slopes), groups) * len(groups)
        return fit + float((penalties * slopes**2).sum()) / 2

    slopes, lowest = start, loss(start)
    for _ in range(MAX_STEPS):
        likely = softmax(columns @ slopes)
        gradient = columns.T @ (likely - targets) + penalties * slopes
        step = np.linalg.solve(_curvature(columns, likely, penalties), gradient.T.ravel())
        step = step.reshape(start.shape[::-1]).T
        size = 1.0
        while (reached := loss(slopes - size * step)) > lowest and size > SMALLEST_STEP:
            size /= 2
        slopes, lowest = slopes - size * step, reached
        if np.abs(columns @ step).max() < TOLERANCE:
            break
    return slopes


def _curvature(columns: Matrix, likely: Matrix, penalties: Matrix) -> Matrix:
    """Return the second derivatives of the loss, group by group."""
    n_columns, n_groups = columns.shape[1], likely.shape[1]
    blocks = np.empty((n_groups, n_columns, n_groups, n_columns))
    for first in range(n_groups):
        for second in range(first + 1):
            weights = likely[:, first] * ((first == second) - likely[:, second])
            block = columns.T @ (weights[:, None] * columns)
            blocks[first, :, second, :] = blocks[second, :, first, :] = block
        blocks[first, :, first, :] += np.diag(penalties[:, 0])
    return blocks.reshape(n_groups * n_columns, -1)


def softmax(scores: Matrix) -> Matrix:
    """Return probabilities from scores, row by row."""
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def cross_fitted(columns: Matrix, groups: Counts, n_groups: int) -> Matrix:
    """Return each person's probabilities of groups, fitted to other people."""
    folds = fold_numbers(len(columns))
    penalty, slopes = chosen_fit(columns, groups, n_groups, folds == 0)
    likely = softmax(columns @ slopes)
    for fold in range(1, N_FOLDS):
        out = folds == fold
        slopes = fit_softmax(columns[~out], groups[~out], penalty, start=slopes)
        likely[out] = softmax(columns[out] @ slopes)
    return likely


def chosen_fit(columns: Matrix, groups: Counts, n_groups: int, out: Flags) -> tuple[float, Matrix]:
    """Return the penalty with the lowest loss on the people left out, and its slopes."""
    slopes = np.zeros((columns.shape[1], n_groups))
    best = (np.inf, PENALTIES[0], slopes)
    for penalty in PENALTIES:
        slopes = fit_softmax(columns[~out], groups[~out], penalty, start=slopes)
        loss = log_loss(softmax(columns[out] @ slopes), groups[out])
        if loss < best[0]:
            best = loss, penalty, slopes
    return best[1], best[2]


def log_loss(likely: Matrix, groups: Counts) -> float:
    """Return the mean of −ln P(own group)."""
    own: Vector = likely[np.arange(len(groups)), groups]
    return float(-np.log(np.maximum(own, np.finfo(float).tiny)).mean())


def fold_numbers(n_people: int) -> Counts:
    """Divide people into parts at random, always in the same way."""
    order = np.random.default_rng(0).permutation(n_people)
    numbers = np.empty(n_people, dtype=np.int64)
    numbers[order] = np.arange(n_people) % N_FOLDS
    return numbers
