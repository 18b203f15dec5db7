"""Runtime: people put to the user's own model, to see whether it decides as FETA says (S1, S6)."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from feta.arrays import Answers, Matrix
from feta.errors import NetworkError
from feta.model import Model
from feta.network.agreement import Squash, squashed
from feta.network.embedding import unexpanded
from feta.network.network import Network
from feta.network.readers.sklearn import raw_table, taken_apart
from feta.network.readers.torch import read_torch, torch_outputs
from feta.rule import Argmax, OneVsRest, Rule, Threshold, Tolerance
from feta.schema import Schema
from feta.space.raw_table import TableMaker
from feta.verdict.counterexample import Counterexample

# The user's own runtime: rows in people's own units to what `Model.decide` would give, or to scores
# for regression.
Replay = Callable[[Matrix], Answers]


def runtime_of(
    source: Any,  # noqa: ANN401 - an estimator or a module
    model: Model,
    *,
    schema: Schema | None = None,
    table: TableMaker | None = None,
) -> Replay:
    """Give a function that lets a fitted scikit-learn estimator or a torch module decide itself.

    It is what `audit` takes as `replay`: every pair is then put to the user's own model, too. A
    schema says which scaling a module expects, `table` how a pipeline's table looks where that is not
    a frame of raw columns.

    Examples
    --------
    >>> import feta, pandas as pd
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> X = pd.DataFrame({"age": [20, 60, 25, 70], "income": [10, 20, 70, 80]})
    >>> pipeline = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, [0, 0, 1, 1])
    >>> space = feta.FeatureSpace.from_frame(X, sensitive=["age"])
    >>> model = feta.Model(space, feta.read_sklearn(pipeline, space))
    >>> found = feta.audit(model, X, replay=feta.runtime_of(pipeline, model))
    >>> [finding.replayed for finding in found.pairs]
    []
    """
    if hasattr(source, "predict"):
        return _estimator(source, model, table)
    if hasattr(source, "forward") and hasattr(source, "state_dict"):
        return graph_runtime(torch_outputs(source), model, read_torch(source), schema=schema)
    kind = type(source).__name__
    raise NetworkError(f"people can be replayed in an estimator or a torch module, got {kind}")


def replays(replay: Replay, model: Model, pairs: Sequence[Counterexample]) -> list[bool]:
    """Say of each pair whether the user's own runtime treats the two apart, and as FETA says."""
    answers = replay(np.concatenate([np.stack([one.person, one.counterpart]) for one in pairs]))
    both = answers.reshape(-1, 2)
    if isinstance(model.rule, Tolerance):
        return [bool(one) for one in np.abs(both[:, 0] - both[:, 1]) > model.rule.epsilon]
    return [tuple(two.tolist()) == one.decisions for two, one in zip(both, pairs, strict=True)]


def graph_runtime(
    outputs_of: Callable[[Matrix], Matrix],
    model: Model,
    network: Network,
    *,
    schema: Schema | None = None,
) -> Replay:
    """Let a network, here as it was read, decide itself: by what it gives for its own inputs."""

    def replay(people: Matrix) -> Answers:
        rows = people
        if schema is not None:
            rows = (people - np.array(schema.centers)) / np.array(schema.scales)
        outputs = outputs_of(unexpanded(rows, network, model.space))
        return answers_of(model.rule, outputs, squashed=network.sigmoid)

    return replay


def graph_gap(
    outputs_of: Callable[[Matrix], Matrix],
    model: Model,
    network: Network,
    people: Matrix,
    *,
    schema: Schema,
) -> float:
    """Measure how far a network's own outputs, here as it was read, are from FETA's at most."""
    rows = (people - np.array(schema.centers)) / np.array(schema.scales)
    inputs = unexpanded(rows, network, model.space)
    kind: Squash | None = None
    if network.sigmoid:
        kind = "sigmoid" if network.outputs == 1 else "softmax"
    ours, theirs = squashed(network(inputs), kind), outputs_of(inputs)
    if network.outputs > 1:  # a LogSoftmax moves all scores of a row alike
        ours, theirs = (one - one.mean(axis=1, keepdims=True) for one in (ours, theirs))
    return float(np.abs(ours - theirs.reshape(ours.shape)).max(initial=0.0))


def estimator_gap(estimator: Any, model: Model, people: Matrix) -> float:  # noqa: ANN401 - scikit-learn ships no types
    """Measure how far an estimator's own probabilities, or scores, are from FETA's at most."""
    steps, last = taken_apart(estimator)
    rows = (
        raw_table(estimator, model.space)(people) if steps is not None else _rows_for(last)(people)
    )
    scores = model.network(people)
    if not hasattr(estimator, "predict_proba"):
        theirs = np.asarray(estimator.predict(rows), dtype=np.float64).reshape(scores.shape)
        return float(np.abs(scores - theirs).max(initial=0.0))
    chances = np.asarray(estimator.predict_proba(rows), dtype=np.float64)
    several = scores.shape[1] > 1
    ours = squashed(scores, "softmax" if several else "sigmoid")
    return float(np.abs(ours - (chances if several else chances[:, 1:])).max(initial=0.0))


def answers_of(rule: Rule, outputs: Matrix, *, squashed: bool) -> Answers:
    """Decide as the source would, by what it gives: scores, or probabilities if squashed."""
    match rule:
        case Threshold():
            return _favorable(rule, outputs, squashed=squashed)
        case Argmax():
            return np.argmax(outputs, axis=1)
        case OneVsRest(place=place):
            return np.argmax(outputs, axis=1) == place
        case Tolerance():
            return outputs[:, 0]


def _favorable(rule: Threshold, outputs: Matrix, *, squashed: bool) -> Answers:
    threshold = rule.value
    if squashed:
        threshold = 1 / (1 + np.exp(-np.clip(rule.value, -700.0, 700.0)))  # exp(700) is finite
    if outputs.shape[1] == 2 and not squashed:  # noqa: PLR2004 - two classes
        value = outputs[:, 1] - outputs[:, 0]
    else:
        value = outputs[:, -1]
    favorable = value > threshold if rule.favors == "above" else value < threshold
    return np.asarray(favorable | ((value == threshold) & (rule.equality == "favorable")))


def _estimator(estimator: Any, model: Model, given: TableMaker | None) -> Replay:  # noqa: ANN401 - scikit-learn ships no types
    steps, last = taken_apart(estimator)
    table: Callable[[Matrix], Any] = _rows_for(last)
    if steps is not None:
        table = given or raw_table(estimator, model.space)
    classes = np.asarray(getattr(last, "classes_", []))
    rule = model.rule

    def replay(people: Matrix) -> Answers:
        rows = table(people)
        if isinstance(rule, Threshold) and not len(classes):  # a regressor's value decides
            values = np.asarray(estimator.predict(rows), dtype=np.float64)
            return _favorable(rule, values.reshape(-1, 1), squashed=False)
        if isinstance(rule, Threshold) and rule.value != 0.0:  # not where predict parts the classes
            return _favorable(rule, np.asarray(estimator.predict_proba(rows)), squashed=True)
        answers = np.asarray(estimator.predict(rows))
        match rule:
            case Threshold(favors=favors):
                return np.asarray((answers.ravel() == classes[1]) == (favors == "above"))
            case Argmax():
                return np.argmax(answers.reshape(-1, 1) == classes, axis=1)
            case OneVsRest(place=place):
                return np.asarray(answers == classes[place])
            case Tolerance():
                return np.asarray(answers, dtype=np.float64).ravel()

    return replay


def _rows_for(estimator: Any) -> Callable[[Matrix], Any]:  # noqa: ANN401 - scikit-learn ships no types
    """Give rows as a bare estimator takes them: with its column names, if it has some."""
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        return lambda people: people
    import pandas as pd  # noqa: PLC0415 - import feta stays light

    return lambda people: pd.DataFrame(people, columns=names)
