"""Comparison of a forest with the estimator that it was read from, bit for bit."""

import copy
import warnings

import numpy as np

from feta.absorb.evaluation import MAX_QUOTED, Evaluation
from feta.absorb.walk import run_step
from feta.arrays import Array, Counts, Matrix, Vector
from feta.errors import NetworkError
from feta.readers.sklearn.pipeline import Estimator
from feta.readers.sklearn.tree_inputs import TreeInputs
from feta.scorer.forest.forest import Forest
from feta.scorer.forest.trees import CUT
from feta.space.attribute import Derived, Integer
from feta.space.feature_space import FeatureSpace
from feta.space.limits import Number
from feta.space.sampling import draw_people

# People drawn from the space, people with numbers next to cuts, and people at limits.
DRAWN_PEOPLE = 1024
PEOPLE_AT_CUTS = 1024
MAX_PROBES = 4096


def check_trees(forest: Forest, estimator: Estimator, inputs: TreeInputs) -> None:
    """Raise if scores or decisions differ from the estimator's own."""
    people = compared_people(forest, inputs)
    expected, labels = _source(estimator, inputs, people)
    got = forest(people)
    if got.shape != expected.shape:
        raise NetworkError(
            f"the trees and {type(estimator).__name__} give different numbers of scores: got "
            f"{got.shape[1]}; expected {expected.shape[1]}; please report this estimator"
        )
    what = f"those of {type(estimator).__name__}"
    different = (got != expected).any(axis=1)
    if different.any():
        row = int(np.argmax(different))
        raise NetworkError(
            f"the trees' scores differ from {what}: got {got[row].tolist()}; expected "
            f"{expected[row].tolist()} for {inputs.space.decode(people[row])!r}; "
            "please report this estimator"
        )
    if labels is None:
        return
    decided = estimator.classes_[_decide(forest, got)]
    different = np.asarray(decided != labels)
    if different.any():
        row = int(np.argmax(different))
        raise NetworkError(
            f"the trees' decisions differ from {what}: got {decided[row]!r}; expected "
            f"{labels[row]!r} for {inputs.space.decode(people[row])!r}; "
            "please report this estimator"
        )


def compared_people(forest: Forest, inputs: TreeInputs) -> Matrix:
    """Return random people, people next to cuts, and people at the limits of one column."""
    space = inputs.space
    rng = np.random.default_rng(0)
    drawn = draw_people(space, rng, DRAWN_PEOPLE)
    near = draw_people(space, rng, PEOPLE_AT_CUTS)
    for attribute in space.attributes:
        if isinstance(attribute, Number) and not _is_source(attribute, space):
            column = space.columns_of(attribute).start
            numbers = _near_cuts(forest, column)
            codes = np.zeros((len(numbers), attribute.width))
            codes[:, 0] = np.floor(numbers) if isinstance(attribute, Integer) else numbers
            codes = codes[attribute.valid(codes)]
            if len(codes):
                chosen = rng.integers(0, len(codes), len(near))
                near[:, space.columns_of(attribute)] = codes[chosen]
    probes = Evaluation(space, None, inputs.table).probes()
    return np.concatenate([drawn, near, probes[:MAX_PROBES]])


def _is_source(attribute: Number, space: FeatureSpace) -> bool:
    return any(
        isinstance(other, Derived) and other.source == attribute.name for other in space.attributes
    )


def _near_cuts(forest: Forest, column: int) -> Vector:
    """Return the cuts of a column, and the numbers before and after each."""
    trees = forest.trees
    cuts = np.unique(trees.cut[(trees.kind == CUT) & (trees.source == column)])
    with np.errstate(over="ignore"):  # a cut above all numbers
        after = np.nextafter(cuts, np.inf)
    return np.concatenate([cuts, np.nextafter(cuts, -np.inf), after, cuts + 1])


def _decide(forest: Forest, scores: Matrix) -> Counts:
    """Return the classes that the estimator chooses by its own scores."""
    if scores.shape[1] > 1:
        return np.argmax(scores, axis=1)
    score = scores[:, 0]
    chosen = score >= 0 if forest.equality == "above" else score > 0
    return np.asarray(chosen, dtype=np.int64)


def _source(
    estimator: Estimator, inputs: TreeInputs, people: Matrix
) -> tuple[Matrix, Array | None]:
    """Return the estimator's own scores, and its labels if it is a classifier."""
    serial = copy.copy(estimator)
    if hasattr(serial, "n_jobs"):
        serial.n_jobs = 1  # with more, the order of the sum depends on the timing of threads
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            table = inputs.table(people)
            features = table if inputs.steps is None else run_step(inputs.steps, table)
            scores = _scores(serial, features)
            labels = serial.predict(features) if hasattr(serial, "classes_") else None
    except Exception as error:  # the user's code may raise anything
        reason = " ".join(str(error).split())[:MAX_QUOTED]
        raise NetworkError(
            f"{type(estimator).__name__} rejects people of this space: {reason}; compare the "
            "schema's columns with the table that the estimator was trained on"
        ) from error
    return scores.reshape(len(people), -1), labels


def _scores(estimator: Estimator, features: object) -> Matrix:
    if not hasattr(estimator, "classes_"):
        return np.asarray(estimator.predict(features))
    if hasattr(estimator, "decision_function") and "Boosting" in type(estimator).__name__:
        return np.asarray(estimator.decision_function(features))
    return np.asarray(estimator.predict_proba(features))
