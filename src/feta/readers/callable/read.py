"""Reader of any function that predicts: nothing is read, every counterpart is evaluated."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from feta.arrays import Array, Matrix
from feta.errors import NetworkError, SchemaError, unknown_choice
from feta.io.raw_table import TableMaker
from feta.readers.callable.ask import AskCallable, implied_classes
from feta.readers.callable.parse import Labels, Parser, Scores, as_array, to_floats
from feta.readers.callable.tables import ModelTable, model_table
from feta.readers.sklearn.pipeline import split_pipeline
from feta.scorer.counted.calls import ModelCalls, fastest_batch
from feta.scorer.counted.counted import Counted
from feta.scorer.counted.evaluator import CHUNK, Evaluator
from feta.scorer.counted.options import CountingOptions
from feta.scorer.counted.sentinels import Sentinels
from feta.scorer.counted.timed_call import TookTooLong, call_within
from feta.scorer.protocol import Side
from feta.space.feature_space import FeatureSpace
from feta.space.sampling import draw_people

Function = Literal["auto", "predict", "predict_proba", "decision_function"]
Kind = Literal["auto", "scores", "labels"]

# In the order in which "auto" tries them.
SCORING = ("decision_function", "predict_proba")

# People drawn from the space, whose answers show what the function returns.
SAMPLE = 256

# Rows that are evaluated before anything is known about the function.
FIRST_ROWS = 16

# Memory of one batch, and of one cell: an object of Python and its reference.
BATCH_BYTES = 2**26
CELL_BYTES = 64

# Decisions are int8.
MAX_CLASSES = 127


@dataclass(frozen=True, slots=True, eq=False)
class _Chosen:
    """A function of the source, and what its answers mean."""

    name: str
    function: Callable[[Any], Any]
    parser: Parser
    classes: tuple[str, ...] = ()
    equality: Side | None = None
    has_scores: bool = True
    predict: Callable[[Any], Any] | None = None
    labels: Array | None = None


def read_callable(
    source: Any,  # noqa: ANN401 - any object or function
    space: FeatureSpace,
    *,
    table: TableMaker | None = None,
    function: Function = "auto",
    answers: Kind = "auto",
    classes: Sequence[object] | None = None,
    level: float | None = None,
    people: Matrix | None = None,
    version: str = "",
    options: CountingOptions | None = None,
) -> Counted:
    """Return a scorer that evaluates the user's own function on every counterpart.

    Nothing is proved about the function; its provenance is "counted".

    Parameters
    ----------
    source
        An object with `predict`, `predict_proba` or `decision_function`, or any function that
        takes a frame of raw columns and returns one answer per row.
    space
        The raw columns.
    table
        Converts encoded people to the input of the function, if that is not a frame of all raw
        columns, or of the columns on which an estimator was fitted.
    function
        The function of an object that decides. "auto" takes scores that imply what `predict`
        decides, and `predict` itself if there are none.
    answers
        What a function returns: "scores" (numbers; one per class for several classes) or "labels".
        "auto" looks at a sample: numbers other than 0 and 1 are scores.
    classes
        The labels, the unfavorable one first. An estimator has them itself.
    level
        The number above which a probability or a score is favorable; the score is the distance
        from it. None: a score is compared with the threshold of the rule, 0 by default, and the
        probabilities of two classes are compared with each other.
    people
        Rows of the user's table, encoded; they are part of the sample.
    version
        A name of this version of the model. It is part of the fingerprint.
    options
        Repetition, batches, limits and progress.

    Returns
    -------
    Counted
        The scorer, for `feta.Model`.

    Raises
    ------
    NetworkError
        If the function fails on all rows of the sample, or returns something else.

    Examples
    --------
    >>> import feta
    >>> space = feta.FeatureSpace(
    ...     (feta.Integer("age", 18, 90, sensitive=True), feta.Real("income", 0, 9))
    ... )
    >>> def approve(frame):
    ...     return (frame["income"] + frame["age"] / 100 > 5).to_numpy()
    >>> model = feta.Model(space, read_callable(approve, space))
    >>> people = space.encode([{"age": 20, "income": 4.5}, {"age": 20, "income": 8}])
    >>> verdict = feta.verify(feta.FairAt(model, people[0]))
    >>> space.decode(verdict.counterexample.counterpart), verdict.provenance
    ({'age': 51, 'income': 4.5}, 'counted')
    >>> feta.tally(model, people).favorable.tolist()
    [40, 73]
    """
    options = options or CountingOptions()
    _check_choices(function, answers)
    sample = _sample(space, people)
    made = model_table(source, space, table)
    chosen = _choose(source, made, sample, function, answers, classes, level, options)
    ask = AskCallable(made, chosen.function, chosen.parser, chosen.predict, chosen.labels)
    calls = ModelCalls(ask, space, options)
    probes = sample[:FIRST_ROWS]
    sentinels = Sentinels.choose(calls, probes)
    probed = calls.evaluate(probes, [len(probes)])
    if len(probed.problems) == len(probes):
        row, problem = next(iter(probed.problems.items()))
        raise NetworkError(
            f"{chosen.name} has no valid answer for any row of a sample: got, for the row "
            f"({calls.describe(probes[row])}): {problem}"
        )
    batch = options.batch or fastest_batch(calls, sample, largest=_largest_batch(made))
    directions, offsets = _directions(chosen, level)
    return Counted(
        Evaluator(calls, sentinels, min(batch, CHUNK)),
        chosen.name,
        probes,
        probed,
        directions,
        offsets,
        chosen.classes,
        None if level is not None else chosen.equality,
        has_scores=chosen.has_scores,
        exact_only=chosen.has_scores and not chosen.classes and len(directions) == 1,
        version=version,
    )


def _check_choices(function: str, answers: str) -> None:
    functions = ("auto", "predict", *SCORING)
    if function not in functions:
        raise SchemaError(f"invalid function: {unknown_choice(function, functions)}")
    kinds = ("auto", "scores", "labels")
    if answers not in kinds:
        raise SchemaError(f"invalid kind of answers: {unknown_choice(answers, kinds)}")


def _sample(space: FeatureSpace, people: Matrix | None) -> Matrix:
    drawn = draw_people(space, np.random.default_rng(0), SAMPLE)
    if people is None or not len(people):
        return drawn
    rows = np.linspace(0, len(people) - 1, min(len(people), SAMPLE)).astype(np.int64)
    return np.concatenate([np.asarray(people, dtype=np.float64)[rows], drawn])


def _largest_batch(table: ModelTable) -> int:
    n_columns = len(table.columns if table.names is None else table.names)
    return max(1, min(CHUNK, BATCH_BYTES // (CELL_BYTES * max(1, n_columns))))


def _directions(chosen: _Chosen, level: float | None) -> tuple[Matrix, Array]:
    n_answers = chosen.parser.n_answers
    if level is None:
        return np.eye(n_answers), np.zeros(n_answers)
    if not chosen.has_scores or n_answers > 2 or not np.isfinite(level):  # noqa: PLR2004 - a pair
        raise SchemaError(
            f"invalid level: got level={level!r} for {chosen.name} with {n_answers} answers per "
            "row; expected a finite number, for one score or the probabilities of two classes"
        )
    return np.eye(n_answers)[-1:], np.array([-float(level)])


def _choose(
    source: Any,  # noqa: ANN401 - any object or function
    table: ModelTable,
    sample: Matrix,
    function: Function,
    answers: Kind,
    classes: Sequence[object] | None,
    level: float | None,
    options: CountingOptions,
) -> _Chosen:
    """Choose a function of the source, and find out what it returns."""
    first = _First(table, sample, options)
    if not hasattr(source, "predict"):
        if not callable(source):
            raise NetworkError(
                f"the model is not a function: got {type(source).__name__}; expected an object "
                "with predict, or a function that takes a frame and returns one answer per row"
            )
        name = getattr(source, "__qualname__", type(source).__qualname__)
        return _of_function(f"the function {name}", source, first, answers, classes, level)
    last = split_pipeline(source)[1]
    known = getattr(last, "classes_", None) if classes is None else classes
    name = type(last).__name__
    if known is None or np.ndim(known) != 1:
        return _of_function(f"{name}.predict", source.predict, first, answers, None, level)
    labels = _as_labels(known)
    if function == "predict" or (function == "auto" and answers == "labels"):
        return _of_labels(f"{name}.predict", source.predict, labels)
    return _of_classifier(source, name, labels, first, function, level)


def _of_classifier(
    source: Any,  # noqa: ANN401 - scikit-learn ships no types
    name: str,
    labels: Array,
    first: "_First",
    function: Function,
    level: float | None,
) -> _Chosen:
    """Choose scores of a classifier that imply the decisions of `predict` on the sample."""
    names = [function] if function != "auto" else list(SCORING)
    if level is not None and function == "auto":
        names = ["predict_proba", "decision_function"]
    for candidate in names:
        scores = getattr(source, candidate, None)
        if scores is None:
            continue
        array = first.answers(scores)
        n_answers = 1 if array.ndim == 1 else array.shape[1]
        if n_answers not in (1, len(labels)) or (n_answers == 1 and len(labels) != 2):  # noqa: PLR2004 - two classes
            continue
        chosen = _Chosen(
            f"{name}.{candidate}",
            scores,
            Scores(n_answers),
            tuple(str(label) for label in labels.tolist()),
            "below",
            predict=source.predict if level is None else None,
            labels=labels,
        )
        if level is not None or _implies_predict(chosen, first):
            return chosen
        if function != "auto":
            raise NetworkError(
                f"{name}.{candidate} does not decide as {name}.predict: got different classes on "
                "a sample; expected the same; pass function='predict', or the level with which "
                "your program compares the scores"
            )
    if function != "auto" or level is not None:
        wanted = function if function != "auto" else "predict_proba or decision_function"
        raise NetworkError(
            f"{name} has no scores that fit: got no {wanted} with one score per class; expected "
            "it; pass function='predict' without a level"
        )
    return _of_labels(f"{name}.predict", source.predict, labels)


def _implies_predict(chosen: _Chosen, first: "_First") -> bool:
    """Return whether scores imply what `predict` decides, on the sample without near ties."""
    assert chosen.predict is not None
    assert chosen.labels is not None
    ask = AskCallable(first.table, chosen.function, chosen.parser, chosen.predict, chosen.labels)
    answers = first.call(lambda: ask(first.sample))
    valid = np.setdiff1d(np.arange(len(answers)), list(answers.problems))
    labels = as_array(first.call(lambda: chosen.predict(first.made))).reshape(-1)  # type: ignore[misc]
    implied = chosen.labels[implied_classes(answers.values)]
    return bool((labels[valid] == implied[valid]).all()) and bool(len(valid))


def _of_labels(name: str, function: Callable[[Any], Any], labels: Array) -> _Chosen:
    names = tuple(str(label) for label in labels.tolist())
    return _Chosen(name, function, Labels(labels), names, "below", has_scores=False)


def _of_function(
    name: str,
    function: Callable[[Any], Any],
    first: "_First",
    answers: Kind,
    classes: Sequence[object] | None,
    level: float | None,
) -> _Chosen:
    """Find out what a function returns, from a sample."""
    array = first.answers(function)
    n_rows = len(first.sample)
    if array.ndim == 2 and array.shape == (n_rows, 1):  # noqa: PLR2004 - a column
        array = array[:, 0]
    if array.shape[:1] != (n_rows,) or array.ndim > 2:  # noqa: PLR2004 - rows and outputs
        raise NetworkError(
            f"{name} returns the wrong number of answers: got the shape {array.shape} for "
            f"{n_rows:,} rows; expected one answer per row, or one per row and class"
        )
    if array.ndim == 2:  # noqa: PLR2004 - one score per class
        names = tuple(str(label) for label in (classes if classes is not None else ()))
        return _Chosen(name, function, Scores(array.shape[1]), names)
    if classes is not None and answers != "scores":
        return _of_labels(name, function, _as_labels(classes))
    numbers = to_floats(array)
    if array.dtype.kind == "b" or (array.dtype.kind == "O" and _all_booleans(array)):
        return _of_labels(name, function, np.array([False, True]))
    if answers == "labels" or np.isnan(numbers).all():
        shown = ", ".join(repr(label) for label in array[:3].tolist())
        raise NetworkError(
            f"{name} returns labels: got {shown}, …; expected to know all of them; pass "
            "classes=[…], the unfavorable one first"
        )
    binary = bool(np.isin(numbers, (0.0, 1.0)).all())
    if answers == "auto" and binary and level is None:
        return _of_labels(name, function, np.array([0, 1]))
    inside = bool(((numbers >= 0) & (numbers <= 1))[np.isfinite(numbers)].all())
    if answers == "auto" and level is None and inside:
        warnings.warn(
            f"{name} returns numbers between 0 and 1, which are compared with the threshold of "
            "the rule, 0 by default; for probabilities, pass level=0.5; otherwise pass "
            "answers='scores'",
            stacklevel=4,
        )
    return _Chosen(name, function, Scores(1))


def _all_booleans(array: Array) -> bool:
    return all(isinstance(value, bool | np.bool_) for value in array.tolist())


def _as_labels(classes: Any) -> Array:  # noqa: ANN401 - scikit-learn ships no types
    """Return classes as an array that keeps their types; raise unless they are a choice."""
    labels = np.asarray(classes)
    if not isinstance(classes, np.ndarray) and labels.dtype.kind not in "iufb":
        labels = np.empty(len(classes), dtype=object)
        labels[:] = list(classes)
    if labels.ndim != 1 or not 2 <= len(set(labels.tolist())) == len(labels) <= MAX_CLASSES:  # noqa: PLR2004 - a choice
        raise SchemaError(
            f"invalid classes: got {classes!r}; expected 2 to {MAX_CLASSES} different labels"
        )
    return labels


@dataclass(frozen=True, slots=True, eq=False)
class _First:
    """The sample, evaluated before anything is known about the function."""

    table: ModelTable
    sample: Matrix
    options: CountingOptions

    @property
    def made(self) -> Any:  # noqa: ANN401 - a frame or an array
        """The table of the sample."""
        return self.table.make(self.sample)

    def call(self, work: Callable[[], Any]) -> Any:  # noqa: ANN401 - anything
        """Call the function with the time limit; errors of the function become messages."""
        try:
            return call_within(self.options.timeout, work)
        except TookTooLong:
            raise NetworkError(
                f"the model does not answer: got no answer for {len(self.sample):,} rows within "
                f"{self.options.timeout:g} s; expected an answer in that time; pass "
                "CountingOptions(timeout=…) if the model is only slow"
            ) from None

    def answers(self, function: Callable[[Any], Any]) -> Array:
        """Return what a function returns for the sample."""
        try:
            return as_array(self.call(lambda: function(self.made)))
        except NetworkError:
            raise
        except Exception as error:  # the user's code may raise anything
            reason = " ".join(str(error).split())[:300]
            raise NetworkError(
                f"the model fails on rows drawn from the space ({type(error).__name__}: {reason}); "
                "expected one answer per row; check the columns and values of the space, or pass "
                "table=… or people=…"
            ) from error
