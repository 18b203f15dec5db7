"""Evaluation of people by the user's own model, to compare its decisions with FETA's."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from feta.arrays import Answers, Counts, Matrix
from feta.errors import FetaError, NetworkError
from feta.io.raw_table import RawTable, TableMaker
from feta.io.schema import Schema
from feta.model import Model
from feta.readers.boosters import is_booster
from feta.readers.catboost.read import is_catboost
from feta.readers.sklearn.own_threshold import has_own_threshold
from feta.readers.sklearn.pipeline import raw_table, split_pipeline
from feta.readers.sklearn.tree_ensembles import is_tree_ensemble
from feta.readers.sklearn.tree_inputs import TreeInputs, inputs_of
from feta.readers.skorch import is_skorch
from feta.readers.statsmodels.results import LinearResults, is_statsmodels, linear_results
from feta.readers.torch.read import read_torch, torch_outputs
from feta.rule import probability_of
from feta.scorer.network.agreement import Squash
from feta.scorer.network.embedding import unexpanded
from feta.scorer.network.network import Network
from feta.scorer.protocol import SHARES
from feta.verdict.counterexample import Counterexample

if TYPE_CHECKING:
    import pandas as pd

    from feta.readers.comparison import Comparison

# The `replay` of `audit`: maps encoded rows to decisions like `Model.decide`, or to scores for
# regression.
Replay = Callable[[Matrix], Answers]


# Compares encoded people with a frame, given their row numbers.
CompareRows = Callable[[Matrix, "pd.DataFrame | None", list[int] | None], "Comparison"]


@dataclass(frozen=True, slots=True, eq=False)
class SourceAnswers:
    """Decisions of the user's model, and the outputs behind them if they are known.

    `outputs` are scores, or scores after `squash`; one row per person.
    """

    answers: Answers
    outputs: Matrix | None = None
    squash: Squash | None = None

    def part(self, rows: Counts) -> "SourceAnswers":
        """Return the answers for some people."""
        outputs = None if self.outputs is None else self.outputs[rows]
        return SourceAnswers(self.answers[rows], outputs, self.squash)


@dataclass(frozen=True, slots=True, eq=False)
class Runtime:
    """The user's model: it decides encoded rows and, if it reads raw columns, frames.

    `columns` are the raw columns that it reads from a frame; None if it reads encoded rows only.
    """

    name: str  # the function that decides, and its threshold
    run: Callable[[Any], SourceAnswers]
    table: Callable[[Matrix], Any]
    columns: tuple[str, ...] | None = None
    as_frame: bool = True
    compare: CompareRows | None = None  # of a counted model: only its rows can differ

    def __call__(self, people: Matrix) -> Answers:
        """Decide encoded rows."""
        return self.evaluate(people).answers

    def evaluate(self, people: Matrix) -> SourceAnswers:
        """Evaluate encoded rows."""
        return self.run(self.table(people))

    def evaluate_frame(self, frame: "pd.DataFrame") -> SourceAnswers:
        """Evaluate people in raw columns, exactly as the frame holds them."""
        if self.columns is None:
            raise NetworkError(f"{self.name} reads encoded rows, not raw columns")
        rows = frame[list(self.columns)]
        try:
            return self.run(rows if self.as_frame else rows.to_numpy())
        except FetaError:
            raise
        except Exception as error:  # the user's code may raise anything
            reason = " ".join(str(error).split())[:300]
            raise NetworkError(
                f"{self.name} fails on rows of the table ({type(error).__name__}: {reason}); check "
                "that the table is read as your program reads it: [table] in the schema has dtype, "
                "na_values and keep_default_na"
            ) from None


def runtime_of(
    source: Any,  # noqa: ANN401 - an estimator or a module
    model: Model,
    *,
    schema: Schema | None = None,
    table: TableMaker | None = None,
) -> Runtime:
    """Return a runtime that evaluates people with a fitted estimator or a torch module.

    Pass it to `audit` as `replay`: the user's model then evaluates every pair and the people of the
    audited frame. A schema states the scaling that a module expects. `table` makes a pipeline's
    input, if that is not a frame of raw columns.

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
    >>> runtime = feta.runtime_of(pipeline, model)
    >>> runtime.name, runtime.evaluate_frame(X).answers.tolist()
    ("the pipeline's own predict", [False, False, True, True])
    >>> result = feta.audit(model, X, replay=runtime)
    >>> [finding.replayed for finding in result.pairs]
    []
    """
    if is_statsmodels(source):
        return _results_runtime(linear_results(source, model.space, table), model)
    if hasattr(source, "predict"):
        steps, last = split_pipeline(source)
        if steps is None and is_booster(last):
            from feta.readers.booster_runtime import booster_runtime  # noqa: PLC0415 - it imports this module

            return booster_runtime(last, model)
        if steps is None and is_catboost(last):
            from feta.readers.booster_runtime import catboost_runtime  # noqa: PLC0415 - as above

            return catboost_runtime(last, model)
        return _estimator_runtime(source, model, table)
    if hasattr(source, "forward") and hasattr(source, "state_dict"):
        if model.scorer.provenance == "counted":
            from feta.readers.callable.runtime import counted_runtime  # noqa: PLC0415 - as above

            return counted_runtime(model)
        network = read_torch(source)
        return graph_runtime(torch_outputs(source), model, network, name="torch", schema=schema)
    kind = type(source).__name__
    raise NetworkError(
        f"people cannot be replayed in this object: got {kind}; "
        "expected an estimator or a torch module"
    )


def replays(replay: Replay, model: Model, pairs: Sequence[Counterexample]) -> list[bool]:
    """Return for each pair whether the user's runtime gives the same two decisions as FETA."""
    answers = replay(np.concatenate([np.stack([pair.person, pair.counterpart]) for pair in pairs]))
    both = answers.reshape(-1, 2)
    return [model.rule.replays(two, pair.decisions) for two, pair in zip(both, pairs, strict=True)]


def graph_runtime(
    outputs_of: Callable[[Matrix], Matrix],
    model: Model,
    network: Network,
    *,
    name: str,
    schema: Schema | None = None,
) -> Runtime:
    """Return a runtime that decides by a network's outputs; `network` is as it was read."""

    def table(people: Matrix) -> Matrix:
        rows = people
        if schema is not None:
            rows = (people - np.array(schema.centers)) / np.array(schema.scales)
        return unexpanded(rows, network, model.space)

    def run(rows: Matrix) -> SourceAnswers:
        outputs = np.asarray(outputs_of(rows)).reshape(len(rows), -1)
        answers = model.rule.answers_of_outputs(outputs, probabilities=network.sigmoid)
        return SourceAnswers(answers, *_comparable(model, network, outputs))

    return Runtime(name, run, table)


def _comparable(
    model: Model, network: Network, outputs: Matrix
) -> tuple[Matrix | None, Squash | None]:
    """Return outputs that are comparable with the model's scores, and their squash."""
    if outputs.shape[1] == model.scorer.outputs == 1:
        return outputs, "sigmoid" if network.sigmoid else None
    if outputs.shape[1] == 2 and model.scorer.outputs == 1:  # noqa: PLR2004 - two classes
        if network.sigmoid:
            return outputs[:, 1:], "sigmoid"
        return outputs[:, 1:] - outputs[:, :1], None
    if outputs.shape[1] == model.scorer.outputs and network.sigmoid:
        return outputs, "softmax"
    return None, None  # several scores: a LogSoftmax shifts a row, with the same decision


def _estimator_runtime(estimator: Any, model: Model, table: TableMaker | None) -> Runtime:  # noqa: ANN401 - scikit-learn ships no types
    steps, last = split_pipeline(estimator)
    owner = "the estimator's" if steps is None else "the pipeline's"
    name = estimator_name(model, last, owner)

    def run(rows: object) -> SourceAnswers:
        return estimator_answers(estimator, last, model, rows)

    if steps is None and table is None and is_tree_ensemble(last):
        trees = inputs_of(None, last, model.space, table=None)
        return Runtime(name, run, trees.table, _raw_names(trees))
    if steps is None and table is None:
        names = getattr(last, "feature_names_in_", None)
        columns = _raw_columns(names, model)
        return Runtime(name, run, _row_maker(last), columns)
    table = table or raw_table(estimator, model.space)
    as_frame = bool(getattr(table, "as_frame", True))
    return Runtime(name, run, table, tuple(table.names), as_frame)


def _raw_names(trees: TreeInputs) -> tuple[str, ...] | None:
    """Return the raw columns that trees read by name; None if they read encoded rows."""
    raw = isinstance(trees.table, RawTable) and trees.table.as_frame
    return tuple(trees.table.names) if raw else None


def estimator_name(model: Model, last: object, owner: str = "the estimator's") -> str:
    """Return the function that decides, and its threshold."""
    function, threshold = _deciding_function(model, last)
    suffix = "" if threshold is None else f", compared with {threshold:g}"
    return f"{owner} own {function}{suffix}"


def _results_runtime(results: LinearResults, model: Model) -> Runtime:
    """Return a runtime that compares predictions with the rule's threshold.

    With a probit link, only a probability of 0.5 has a known score; others are compared with the
    linear predictor.
    """
    threshold, kind = model.rule.threshold, results.kind
    function, shown = "predict", threshold
    if kind == "probit":
        function, shown = ("predict", 0.5) if threshold == 0.0 else ("linear predictor", threshold)
    elif kind == "log":
        shown = _predicted_threshold(model)
    elif kind == "logit" and threshold is not None:
        shown = probability_of(threshold)
    suffix = "" if shown is None else f", compared with {shown:g}"

    def run(rows: Any) -> SourceAnswers:  # noqa: ANN401 - a frame or an array
        if function != "predict":
            return _predicted(results.linear(rows), model)
        values = results.predict(rows)
        if kind == "probit":
            halves = model.rule.answers_of_outputs((values - 0.5)[:, None], probabilities=False)
            return SourceAnswers(halves, results.linear(rows)[:, None])
        if kind != "logit":
            return _predicted(values, model)
        column = values[:, None]
        answers = model.rule.answers_of_outputs(column, probabilities=True)
        return SourceAnswers(answers, column, "sigmoid")

    columns = results.columns if results.table is not None else None
    return Runtime(f"the results' own {function}{suffix}", run, results.rows, columns)


def _raw_columns(names: Any, model: Model) -> tuple[str, ...] | None:  # noqa: ANN401 - scikit-learn ships no types
    """Return a bare estimator's columns if they are those of the space, one number each."""
    plain = [attribute.name for attribute in model.space.attributes if attribute.width == 1]
    if names is None or [str(name) for name in names] != plain:
        return None
    return tuple(plain) if len(plain) == len(model.space.attributes) else None


def _deciding_function(model: Model, last: object) -> tuple[str, float | None]:
    """Return the function whose values decide, and their threshold."""
    threshold = model.rule.threshold
    if not hasattr(last, "classes_"):
        return "predict", _predicted_threshold(model)
    if threshold is None or threshold == 0.0:  # the threshold of predict
        return "predict", None
    if model.scorer.link in SHARES:  # the threshold is the probability itself
        return "predict_proba", threshold
    if has_own_threshold(last) and model.scorer.link != "logit":
        raise NetworkError(
            f"{type(last).__name__} decides with its own threshold: got another one, {threshold!r} "
            "after it; expected 0; change the classifier's threshold instead"
        )
    if model.scorer.link == "logit":
        return "predict_proba", probability_of(threshold)
    return "decision_function", threshold


def _predicted_threshold(model: Model) -> float | None:
    """Return the threshold on a regressor's predictions."""
    threshold = model.rule.threshold
    if threshold is None or model.scorer.link != "log":
        return threshold
    return float(np.exp(threshold))


def estimator_answers(estimator: Any, last: Any, model: Model, rows: object) -> SourceAnswers:  # noqa: ANN401 - scikit-learn ships no types
    """Return the answers of an estimator's own functions; `last` is its bare final estimator."""
    rule, classes = model.rule, np.asarray(getattr(last, "classes_", []))
    if not len(classes):
        return _predicted(np.asarray(estimator.predict(rows), dtype=np.float64), model)
    outputs, squash = _outputs(estimator, last, model, rows)
    function = _deciding_function(model, last)[0]
    if function == "predict":
        labels = np.asarray(estimator.predict(rows))
        return SourceAnswers(rule.answers_of_labels(labels, classes), outputs, squash)
    values = np.asarray(getattr(estimator, function)(rows), dtype=np.float64)
    values = values.reshape(len(values), -1)
    if model.scorer.link in SHARES:
        answers = rule.answers_of_outputs(values[:, -1:], probabilities=False)
    else:
        answers = rule.answers_of_outputs(values, probabilities=function == "predict_proba")
    return SourceAnswers(answers, outputs, squash)


def _predicted(values: Matrix, model: Model) -> SourceAnswers:
    """Return the answers by a regressor's values, or by predictions of a log link."""
    values, rule = values.reshape(-1, 1), model.rule
    if model.scorer.link != "log":
        return SourceAnswers(rule.answers_of_outputs(values, probabilities=False), values)
    threshold = _predicted_threshold(model)
    assert threshold is not None  # no other rule applies to a link
    # Distances keep their signs, and the rule compares them with 0.
    signs = np.sign(values - threshold) + rule.threshold
    with np.errstate(divide="ignore"):  # a prediction of 0 has underflowed
        scores = np.log(values)
    answers = rule.answers_of_outputs(signs, probabilities=False)
    return SourceAnswers(answers, scores if np.isfinite(scores).all() else None)


def _outputs(
    estimator: Any,  # noqa: ANN401 - scikit-learn ships no types
    last: object,
    model: Model,
    rows: object,
) -> tuple[Matrix | None, Squash | None]:
    """Return scores, or probabilities if the estimator has no scores."""
    if is_skorch(last) or has_own_threshold(last):
        return None, None
    n_outputs = model.scorer.outputs
    if model.scorer.link in SHARES:
        return _shares(np.asarray(estimator.predict_proba(rows), dtype=np.float64), model), None
    if hasattr(estimator, "decision_function") and not is_booster(last):  # LightGBM's may be a sum
        scores = np.asarray(estimator.decision_function(rows), dtype=np.float64)
        scores = scores.reshape(len(scores), -1)
        return (scores, None) if scores.shape[1] == n_outputs else (None, None)
    if model.scorer.link != "logit":  # its probabilities are not those of its scores
        return None, None
    probabilities = np.asarray(estimator.predict_proba(rows), dtype=np.float64)
    if n_outputs == 1:
        return probabilities[:, 1:2], "sigmoid"
    return (probabilities, "softmax") if probabilities.shape[1] == n_outputs else (None, None)


def _shares(probabilities: Matrix, model: Model) -> Matrix | None:
    """Return probabilities as the model's scores: one per class, a difference, or the last."""
    if model.scorer.outputs == probabilities.shape[1]:
        return probabilities
    if model.scorer.outputs != 1:
        return None
    last = probabilities[:, 1:2]
    return last - probabilities[:, :1] if model.rule.threshold == 0.0 else last


def _row_maker(estimator: Any) -> Callable[[Matrix], Any]:  # noqa: ANN401 - scikit-learn ships no types
    """Return a function that makes a bare estimator's input, with its column names if any."""
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        return lambda people: people
    import pandas as pd  # noqa: PLC0415 - import feta stays light

    return lambda people: pd.DataFrame(people, columns=names)
