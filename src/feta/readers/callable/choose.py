"""Choice of a function of the user's model, and what its answers mean."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from feta.arrays import Array, Matrix
from feta.errors import ModelTimeout, NetworkError, SchemaError, unknown_choice
from feta.readers.callable.ask import AskCallable, implied_classes
from feta.readers.callable.parse import (
    Labels,
    Parser,
    Scores,
    answered,
    as_array,
    label_name,
    to_floats,
)
from feta.readers.callable.tables import ModelTable
from feta.readers.sklearn.pipeline import split_pipeline
from feta.scorer.counted.answers import RawAnswers
from feta.scorer.counted.calls import ModelCalls
from feta.scorer.counted.options import CountingOptions
from feta.scorer.counted.timed_call import TookTooLong, call_within
from feta.scorer.protocol import Side
from feta.space.feature_space import FeatureSpace

Function = Literal["auto", "predict", "predict_proba", "decision_function"]
Kind = Literal["auto", "scores", "labels"]
Call = Callable[[Any], Any]

# In the order in which "auto" tries them; a level is compared with probabilities only.
SCORING = ("decision_function", "predict_proba")

# If a function fails on the sample, it is called on smaller parts of it, a few of each size.
FIRST_SIZES = (1024, 64, 8, 1)
FIRST_CALLS = 8

# As few different integers are labels rather than scores.
FEW_LABELS = 2

# Decisions are int8.
MAX_CLASSES = 127


@dataclass(frozen=True, slots=True, eq=False)
class Chosen:
    """A function of the user's model, and what its answers mean."""

    name: str
    function: Call
    parser: Parser
    classes: tuple[str, ...] = ()
    equality: Side | None = None
    has_scores: bool = True
    predict: Call | None = None  # decides; the function gives scores only
    labels: Array | None = None  # that `predict` returns
    shares: bool = False  # whether the scores are probabilities


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """What the user wants evaluated, and a sample of people."""

    source: Any
    space: FeatureSpace
    table: ModelTable
    sample: Matrix
    options: CountingOptions
    function: Function
    answers: Kind
    classes: Sequence[object] | None
    level: float | None

    def __post_init__(self) -> None:
        functions = ("auto", "predict", *SCORING)
        if self.function not in functions:
            raise SchemaError(f"invalid function: {unknown_choice(self.function, functions)}")
        kinds = ("auto", "scores", "labels")
        if self.answers not in kinds:
            raise SchemaError(f"invalid kind of answers: {unknown_choice(self.answers, kinds)}")

    def choose(self) -> Chosen:
        """Choose a function of the source, and find out what it returns."""
        source = self.source
        if not hasattr(source, "predict"):
            if not callable(source):
                raise NetworkError(
                    f"the model is not a function: got {type(source).__name__}; expected an "
                    "object with predict, or a function that takes a frame and returns one answer "
                    "per row"
                )
            name = getattr(source, "__qualname__", type(source).__qualname__)
            label = getattr(source, "label", f"the function {name}")
            return self._of_function(label, source)
        last = split_pipeline(source)[1]
        name = type(last).__name__
        own: Any = getattr(last, "classes_", None)
        known: Any = own if self.classes is None else self.classes
        if known is None or np.ndim(known) != 1:
            return self._without_classes(name)
        labels = _as_labels(known)
        labels_only = self.function == "auto" and self.answers == "labels"
        ordered = own is None or list(own) == labels.tolist()
        if not ordered and self.function != "predict" and self.level is not None:
            raise NetworkError(
                f"the classes have another order than those of {name}: got {labels.tolist()!r}; "
                f"expected {list(own)!r}, the order of its scores; leave out classes=…"
            )
        if self.function == "predict" or labels_only or not ordered:
            return _of_labels(f"{name}.predict", source.predict, labels)
        return self._of_classifier(name, labels)

    def _without_classes(self, name: str) -> Chosen:
        """Choose a function of an object that states no classes."""
        wanted: str = self.function
        if wanted == "auto":
            probable = self.level is not None and hasattr(self.source, "predict_proba")
            wanted = "predict_proba" if probable else "predict"
        function = getattr(self.source, wanted, None)
        if function is None:
            raise NetworkError(f"{name} has no {wanted}: got function={wanted!r}; expected another")
        return self._of_function(f"{name}.{wanted}", function)

    def _of_classifier(self, name: str, labels: Array) -> Chosen:
        """Choose scores of a classifier that imply the decisions of `predict` on the sample."""
        for candidate in self._candidates:
            chosen = self._scores_of(name, candidate, labels)
            if chosen is None:
                continue
            if self.level is not None or self._implies_predict(chosen, labels):
                return chosen
            if self.function != "auto":
                raise NetworkError(
                    f"{name}.{candidate} does not decide as {name}.predict: got different classes "
                    "on a sample; expected the same; pass function='predict', or the level with "
                    "which your program compares the scores"
                )
        if self.function != "auto" or self.level is not None:
            wanted = " or ".join(self._candidates)
            raise NetworkError(
                f"{name} has no scores that fit: got no {wanted} with one score per class; "
                "expected one; pass function='predict' without a level, or "
                "function='decision_function' and a level of its scores"
            )
        return _of_labels(f"{name}.predict", self.source.predict, labels)

    @property
    def _candidates(self) -> tuple[str, ...]:
        if self.function != "auto":
            return (self.function,)
        return SCORING if self.level is None else ("predict_proba",)

    def _scores_of(self, name: str, candidate: str, labels: Array) -> Chosen | None:
        """Return a scoring function of a classifier; None if it has none that fits."""
        function = getattr(self.source, candidate, None)
        if function is None:
            return None
        array = self.first_answers(function)
        n_answers = 1 if array.ndim == 1 else array.shape[-1]
        if n_answers != len(labels) and (n_answers, len(labels)) != (1, 2):
            return None
        decides = self.level is None
        names = tuple(str(label) for label in labels.tolist())
        return Chosen(
            f"{name}.predict and {candidate}" if decides else f"{name}.{candidate}",
            function,
            Scores(n_answers, tuple(label_name(label) for label in labels.tolist())),
            names,
            "below" if decides else None,
            predict=self.source.predict if decides else None,
            labels=labels,
            shares=candidate == "predict_proba",
        )

    def _implies_predict(self, chosen: Chosen, labels: Array) -> bool:
        """Return whether scores imply what `predict` decides, on the sample."""
        scores = self._evaluate(chosen.function, chosen.parser)
        decided = self._evaluate(self.source.predict, Labels(labels))
        failed = [*scores.problems, *decided.problems]
        valid = np.setdiff1d(np.arange(len(self.sample)), failed)
        implied = implied_classes(scores.values[valid])
        return len(valid) > 0 and np.array_equal(implied, np.argmax(decided.values[valid], axis=1))

    def _evaluate(self, function: Call, parser: Parser) -> RawAnswers:
        ask = AskCallable(self.table, function, parser)
        calls = ModelCalls(ask, self.space, self.options)
        return calls.evaluate(self.sample, [len(self.sample)])

    def _of_function(self, name: str, function: Call) -> Chosen:
        """Find out what a function returns, from the sample."""
        array = self.first_answers(function)
        if array.ndim == 2:  # noqa: PLR2004 - one score per class
            classes = () if self.classes is None else tuple(self.classes)
            parser = self._parser(array.shape[1], tuple(label_name(label) for label in classes))
            shares = name.endswith(".predict_proba")
            return Chosen(name, function, parser, tuple(map(str, classes)), shares=shares)
        labels = self._labels_in(name, array)
        if labels is not None:
            return _of_labels(name, function, labels)
        self._warn_about_probabilities(name, to_floats(array))
        return Chosen(name, function, self._parser(1))

    def _parser(self, n_answers: int, names: tuple[str, ...] = ()) -> Scores:
        return Scores(n_answers, names, getattr(self.source, "rounding", None))

    def _labels_in(self, name: str, array: Array) -> Array | None:
        """Return the labels that a function returns; None if it returns scores."""
        if self.answers == "scores":
            return None
        if self.classes is not None:
            return _as_labels(self.classes)
        given = array[answered(array)]
        if given.size and all(type(value) is bool for value in given.tolist()):
            return np.array([False, True])
        cells = to_floats(given)
        numbers = cells[~np.isnan(cells)]
        whole = bool((numbers == np.floor(numbers)).all())
        binary = whole and bool(np.isin(numbers, (0.0, 1.0)).all())
        few = whole and len(np.unique(numbers)) <= FEW_LABELS and self.level is None
        unnamed = few and (not binary or len(numbers) < len(cells))
        if self.answers == "labels" or not numbers.size or unnamed:
            shown = ", ".join(
                repr(label) for label in (given if given.size else array)[:3].tolist()
            )
            raise NetworkError(
                f"{name} returns labels: got {shown}, …; expected to know all of them; pass "
                "classes=[…], the unfavorable one first, or answers='scores' if they are numbers"
            )
        if binary and self.level is not None and array.dtype.kind != "f":
            raise NetworkError(
                f"{name} returns labels: got 0 and 1, and level={self.level!r}; expected "
                "probabilities or scores; leave out the level, or pass answers='scores'"
            )
        return np.array([0, 1]) if binary and self.level is None else None

    def _warn_about_probabilities(self, name: str, numbers: Array) -> None:
        finite = numbers[np.isfinite(numbers)]
        if self.answers == "auto" and self.level is None and ((finite >= 0) & (finite <= 1)).all():
            if getattr(self.source, "end", "") == "unknown":
                raise NetworkError(
                    f"{name} has outputs of unknown meaning: got numbers between 0 and 1; expected "
                    "a last sigmoid, or scores of a last linear layer; end the network in one of "
                    "them, or pass a function of your own with level=0.5 to feta.read_callable"
                )
            warnings.warn(
                f"{name} returns numbers between 0 and 1, which are compared with the threshold "
                "of the rule, 0 by default; for probabilities, pass level=0.5; otherwise pass "
                "answers='scores'",
                stacklevel=5,
            )

    def first_answers(self, function: Call) -> Array:
        """Return what a function returns for the sample, or for those rows that it accepts."""
        failure: NetworkError | None = None
        for size in FIRST_SIZES:
            for start in range(0, len(self.sample), size)[:FIRST_CALLS]:
                part = self.sample[start : start + size]
                made = self.table.make(part)
                try:
                    array = as_array(self._call(partial(function, made)))
                except ModelTimeout:
                    raise
                except NetworkError as error:
                    failure = failure or error
                else:
                    return _one_per_row(array, len(part))
        assert failure is not None  # every call failed
        raise failure

    def _call(self, work: Callable[[], Any]) -> Any:  # noqa: ANN401 - anything
        """Call the model with the time limit; errors of the model become messages."""
        try:
            return call_within(self.options.timeout, work)
        except TookTooLong:
            raise ModelTimeout(
                f"the model does not answer: got no answer for rows of the sample within "
                f"{self.options.timeout:g} s; expected an answer in that time; pass "
                "CountingOptions(timeout=…) if the model is only slow"
            ) from None
        except Exception as error:  # the user's code may raise anything
            reason = " ".join(str(error).split())[:300]
            raise NetworkError(
                f"the model fails on rows of the sample ({type(error).__name__}: {reason}); "
                "expected one answer per row; check the columns and values of the space, or pass "
                "table=…"
            ) from error


def _one_per_row(array: Array, n_rows: int) -> Array:
    """Return one answer per row, or one per row and class; raise if there is anything else."""
    if array.shape == (n_rows, 1):
        array = array[:, 0]
    if array.shape[:1] != (n_rows,) or array.ndim > 2:  # noqa: PLR2004 - rows and outputs
        raise NetworkError(
            f"the model returns the wrong number of answers: got the shape {array.shape} for "
            f"{n_rows:,} rows; expected one answer per row, or one per row and class"
        )
    return array


def _of_labels(name: str, function: Call, labels: Array) -> Chosen:
    names = tuple(str(label) for label in labels.tolist())
    return Chosen(name, function, Labels(labels), names, "below", has_scores=False)


def _as_labels(classes: Any) -> Array:  # noqa: ANN401 - scikit-learn ships no types
    """Return classes as an array that keeps their types; raise unless they are a choice."""
    labels = np.asarray(classes)
    if not isinstance(classes, np.ndarray) and labels.dtype.kind not in "iufb":
        labels = np.empty(len(classes), dtype=object)
        labels[:] = list(classes)
    different = set(labels.tolist()) if labels.ndim == 1 else set()
    if not 2 <= len(different) == len(labels) <= MAX_CLASSES:  # noqa: PLR2004 - a choice
        raise SchemaError(
            f"invalid classes: got {classes!r}; expected 2 to {MAX_CLASSES} different labels"
        )
    return labels
