"""Runtime: people evaluated by the user's own model, to see whether it decides as FETA does (S1, S6, S7)."""

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
from feta.rule import Argmax, OneVsRest, Rule, Threshold, Tolerance
from feta.scorer.network.agreement import Squash
from feta.scorer.network.embedding import unexpanded
from feta.scorer.network.network import Network
from feta.verdict.counterexample import Counterexample

if TYPE_CHECKING:
    import pandas as pd

# What `audit` takes: encoded rows to what `Model.decide` would return, or to scores for regression.
Replay = Callable[[Matrix], Answers]


@dataclass(frozen=True, slots=True, eq=False)
class SourceAnswers:
    """What the user's own model returns: decisions, and the numbers behind them where they are known.

    `outputs` are scores, or what `squash` makes of scores; one row per person.
    """

    answers: Answers
    outputs: Matrix | None = None
    squash: Squash | None = None

    def part(self, rows: Counts) -> "SourceAnswers":
        """Take some people."""
        outputs = None if self.outputs is None else self.outputs[rows]
        return SourceAnswers(self.answers[rows], outputs, self.squash)


@dataclass(frozen=True, slots=True, eq=False)
class Runtime:
    """The user's own model: it decides encoded rows, and frames in raw columns where it takes those.

    `columns` are the raw columns that it reads from a frame; None where it takes encoded rows only.
    """

    name: str  # the function that decides, and the threshold that it is compared with
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
            raise NetworkError(f"{self.name} takes encoded rows, not raw columns")
        rows = frame[list(self.columns)]
        try:
            return self.run(rows if self.as_frame else rows.to_numpy())
        except FetaError:
            raise
        except Exception as error:  # whatever the user's own code raises
            first = " ".join(str(error).split())[:300]
            message = f"{self.name} fails on rows of the table ({type(error).__name__}: {first}); check that the table is read as your program reads it: [table] in the schema has dtype, na_values and keep_default_na"
            raise NetworkError(message) from None


def runtime_of(
    source: Any,  # noqa: ANN401 - an estimator or a module
    model: Model,
    *,
    schema: Schema | None = None,
    table: TableMaker | None = None,
) -> Runtime:
    """Return an object that lets a fitted scikit-learn estimator or a torch module decide itself.

    It is what `audit` takes as `replay`: every pair is then evaluated by the user's own model, too,
    and so are the people of the audited frame. A schema says which scaling a module expects, `table`
    how a pipeline's table looks where that is not a frame of raw columns.

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
    >>> found = feta.audit(model, X, replay=runtime)
    >>> [finding.replayed for finding in found.pairs]
    []
    """
    if hasattr(source, "predict"):
        return _estimator(source, model, table)
    if hasattr(source, "forward") and hasattr(source, "state_dict"):
        network = read_torch(source)
        return graph_runtime(torch_outputs(source), model, network, name="torch", schema=schema)
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
    name: str,
    schema: Schema | None = None,
) -> Runtime:
    """Let a network, here as it was read, decide itself: by its outputs for encoded people."""

    def table(people: Matrix) -> Matrix:
        rows = people
        if schema is not None:
            rows = (people - np.array(schema.centers)) / np.array(schema.scales)
        return unexpanded(rows, network, model.space)

    def run(rows: Matrix) -> SourceAnswers:
        outputs = np.asarray(outputs_of(rows)).reshape(len(rows), -1)
        answers = answers_of(model.rule, outputs, squashed=network.sigmoid)
        return SourceAnswers(answers, *_comparable(model, network, outputs))

    return Runtime(name, run, table)


def _comparable(
    model: Model, network: Network, outputs: Matrix
) -> tuple[Matrix | None, Squash | None]:
    """Return outputs that can be compared with the model's scores, and what made them."""
    if outputs.shape[1] == model.network.outputs == 1:
        return outputs, "sigmoid" if network.sigmoid else None
    if outputs.shape[1] == 2 and model.network.outputs == 1:  # noqa: PLR2004 - two classes
        if network.sigmoid:
            return outputs[:, 1:], "sigmoid"
        return outputs[:, 1:] - outputs[:, :1], None
    if outputs.shape[1] == model.network.outputs and network.sigmoid:
        return outputs, "softmax"
    return None, None  # several scores: a LogSoftmax moves all of a row, and decides the same


def answers_of(rule: Rule, outputs: Matrix, *, squashed: bool) -> Answers:
    """Decide as the source would, by what it gives: scores, or probabilities if squashed."""
    match rule:
        case Threshold():
            return _favorable(rule, outputs, squashed=squashed)
        case Argmax():
            return np.argmax(outputs, axis=1)
        case OneVsRest(index=index):
            return np.argmax(outputs, axis=1) == index
        case Tolerance():
            return outputs[:, 0]


def probability_of(score: float) -> float:
    """Return the probability that a score stands for."""
    return float(1 / (1 + np.exp(-np.clip(score, -700.0, 700.0))))  # exp(700) is finite


def _favorable(rule: Threshold, outputs: Matrix, *, squashed: bool) -> Answers:
    threshold = probability_of(rule.value) if squashed else rule.value
    if outputs.shape[1] == 2 and not squashed:  # noqa: PLR2004 - two classes
        value = outputs[:, 1] - outputs[:, 0]
    else:
        value = outputs[:, -1]
    favorable = value > threshold if rule.favors == "above" else value < threshold
    return np.asarray(favorable | ((value == threshold) & (rule.equality == "favorable")))


def _estimator(estimator: Any, model: Model, given: TableMaker | None) -> Runtime:  # noqa: ANN401 - scikit-learn ships no types
    steps, last = split_pipeline(estimator)
    who = "the estimator's" if steps is None else "the pipeline's"
    function, cut = _deciding(model.rule, last)
    name = f"{who} own {function}" + ("" if cut is None else f", compared with {cut:g}")

    def run(rows: object) -> SourceAnswers:
        return _decided(estimator, last, model, rows)

    if steps is None:
        names = getattr(last, "feature_names_in_", None)
        raw = _raw_columns(names, model)
        return Runtime(name, run, _rows_for(last), raw)
    table = given or raw_table(estimator, model.space)
    as_frame = bool(getattr(table, "as_frame", True))
    return Runtime(name, run, table, tuple(table.names), as_frame)


def _raw_columns(names: Any, model: Model) -> tuple[str, ...] | None:  # noqa: ANN401 - scikit-learn ships no types
    """Return a bare estimator's columns if they are the space's own, each one number as it is."""
    plain = [one.name for one in model.space.attributes if one.width == 1]
    if names is None or [str(name) for name in names] != plain:
        return None
    return tuple(plain) if len(plain) == len(model.space.attributes) else None


def _deciding(rule: Rule, last: object) -> tuple[str, float | None]:
    """Return the function whose values decide, and the value that they are compared with."""
    if isinstance(rule, Threshold) and not hasattr(last, "classes_"):
        return "predict", rule.value
    if isinstance(rule, Threshold) and rule.value != 0.0:  # predict compares with 0.5
        return "predict_proba", probability_of(rule.value)
    return "predict", None


def _decided(estimator: Any, last: Any, model: Model, rows: object) -> SourceAnswers:  # noqa: ANN401 - scikit-learn ships no types
    rule, classes = model.rule, np.asarray(getattr(last, "classes_", []))
    if not len(classes):  # a regressor's value
        values = np.asarray(estimator.predict(rows), dtype=np.float64).reshape(-1, 1)
        return SourceAnswers(answers_of(rule, values, squashed=False), values)
    outputs, squash = _outputs(estimator, last, model, rows)
    if _deciding(rule, last)[0] == "predict_proba":
        assert isinstance(rule, Threshold)
        chances = np.asarray(estimator.predict_proba(rows))
        return SourceAnswers(_favorable(rule, chances, squashed=True), outputs, squash)
    answers = np.asarray(estimator.predict(rows))
    match rule:
        case Threshold(favors=favors):
            decided = np.asarray((answers.ravel() == classes[1]) == (favors == "above"))
        case Argmax():
            decided = np.argmax(answers.reshape(-1, 1) == classes, axis=1)
        case OneVsRest(index=index):
            decided = np.asarray(answers.ravel() == classes[index])
        case _:
            raise NetworkError(f"a classifier decides between classes, got {rule!r}")
    return SourceAnswers(decided, outputs, squash)


def _outputs(
    estimator: Any,  # noqa: ANN401 - scikit-learn ships no types
    last: object,
    model: Model,
    rows: object,
) -> tuple[Matrix | None, Squash | None]:
    """Return scores, or probabilities where the estimator has no scores."""
    if is_skorch(last):
        return None, None
    n_outputs = model.network.outputs
    if hasattr(estimator, "decision_function"):
        scores = np.asarray(estimator.decision_function(rows), dtype=np.float64)
        scores = scores.reshape(len(scores), -1)
        return (scores, None) if scores.shape[1] == n_outputs else (None, None)
    chances = np.asarray(estimator.predict_proba(rows), dtype=np.float64)
    if n_outputs == 1:
        return chances[:, 1:2], "sigmoid"
    return (chances, "softmax") if chances.shape[1] == n_outputs else (None, None)


def _rows_for(estimator: Any) -> Callable[[Matrix], Any]:  # noqa: ANN401 - scikit-learn ships no types
    """Return what makes rows as a bare estimator takes them: with its column names, if it has some."""
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        return lambda people: people
    import pandas as pd  # noqa: PLC0415 - import feta stays light

    return lambda people: pd.DataFrame(people, columns=names)
