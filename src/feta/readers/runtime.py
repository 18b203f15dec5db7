"""Evaluation of people by the user's own model, to compare its decisions with FETA's."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from feta.arrays import Answers, Counts, Matrix
from feta.errors import FetaError, NetworkError
from feta.io.raw_table import TableMaker
from feta.io.schema import Schema
from feta.model import Model
from feta.readers.sklearn.pipeline import raw_table, split_pipeline
from feta.readers.skorch import is_skorch
from feta.readers.torch.read import read_torch, torch_outputs
from feta.rule import Rule, probability_of
from feta.scorer.network.agreement import Squash
from feta.scorer.network.embedding import unexpanded
from feta.scorer.network.network import Network
from feta.verdict.counterexample import Counterexample

if TYPE_CHECKING:
    import pandas as pd

# The `replay` of `audit`: maps encoded rows to decisions like `Model.decide`, or to scores for
# regression.
Replay = Callable[[Matrix], Answers]


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
    if hasattr(source, "predict"):
        return _estimator_runtime(source, model, table)
    if hasattr(source, "forward") and hasattr(source, "state_dict"):
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
    function, threshold = _deciding_function(model.rule, last)
    suffix = "" if threshold is None else f", compared with {threshold:g}"
    name = f"{owner} own {function}{suffix}"

    def run(rows: object) -> SourceAnswers:
        return _answer(estimator, last, model, rows)

    if steps is None:
        names = getattr(last, "feature_names_in_", None)
        columns = _raw_columns(names, model)
        return Runtime(name, run, _row_maker(last), columns)
    table = table or raw_table(estimator, model.space)
    as_frame = bool(getattr(table, "as_frame", True))
    return Runtime(name, run, table, tuple(table.names), as_frame)


def _raw_columns(names: Any, model: Model) -> tuple[str, ...] | None:  # noqa: ANN401 - scikit-learn ships no types
    """Return a bare estimator's columns if they are those of the space, one number each."""
    plain = [attribute.name for attribute in model.space.attributes if attribute.width == 1]
    if names is None or [str(name) for name in names] != plain:
        return None
    return tuple(plain) if len(plain) == len(model.space.attributes) else None


def _deciding_function(rule: Rule, last: object) -> tuple[str, float | None]:
    """Return the function whose values decide, and their threshold."""
    if not hasattr(last, "classes_"):
        return "predict", rule.threshold
    if rule.threshold is None or rule.threshold == 0.0:  # predict compares with 0.5
        return "predict", None
    return "predict_proba", probability_of(rule.threshold)


def _answer(estimator: Any, last: Any, model: Model, rows: object) -> SourceAnswers:  # noqa: ANN401 - scikit-learn ships no types
    rule, classes = model.rule, np.asarray(getattr(last, "classes_", []))
    if not len(classes):  # a regressor's value
        values = np.asarray(estimator.predict(rows), dtype=np.float64).reshape(-1, 1)
        return SourceAnswers(rule.answers_of_outputs(values, probabilities=False), values)
    outputs, squash = _outputs(estimator, last, model, rows)
    if _deciding_function(rule, last)[0] == "predict_proba":
        probabilities = np.asarray(estimator.predict_proba(rows))
        answers = rule.answers_of_outputs(probabilities, probabilities=True)
        return SourceAnswers(answers, outputs, squash)
    labels = np.asarray(estimator.predict(rows))
    return SourceAnswers(rule.answers_of_labels(labels, classes), outputs, squash)


def _outputs(
    estimator: Any,  # noqa: ANN401 - scikit-learn ships no types
    last: object,
    model: Model,
    rows: object,
) -> tuple[Matrix | None, Squash | None]:
    """Return scores, or probabilities if the estimator has no scores."""
    if is_skorch(last):
        return None, None
    n_outputs = model.scorer.outputs
    if hasattr(estimator, "decision_function"):
        scores = np.asarray(estimator.decision_function(rows), dtype=np.float64)
        scores = scores.reshape(len(scores), -1)
        return (scores, None) if scores.shape[1] == n_outputs else (None, None)
    probabilities = np.asarray(estimator.predict_proba(rows), dtype=np.float64)
    if n_outputs == 1:
        return probabilities[:, 1:2], "sigmoid"
    return (probabilities, "softmax") if probabilities.shape[1] == n_outputs else (None, None)


def _row_maker(estimator: Any) -> Callable[[Matrix], Any]:  # noqa: ANN401 - scikit-learn ships no types
    """Return a function that makes a bare estimator's input, with its column names if any."""
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        return lambda people: people
    import pandas as pd  # noqa: PLC0415 - import feta stays light

    return lambda people: pd.DataFrame(people, columns=names)
