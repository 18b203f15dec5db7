"""The model of a function or an estimator that is counted, with the [decision] of a schema."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from feta.arrays import Array, Matrix
from feta.errors import NetworkError, SchemaError
from feta.io.raw_table import TableMaker
from feta.io.schema import Schema
from feta.model import Model
from feta.readers.callable.choose import Request
from feta.readers.callable.outcome_labels import check_probabilities, labels_of, typed_labels
from feta.readers.callable.parse import answered, to_floats
from feta.readers.callable.read import SAMPLE, read_callable
from feta.readers.callable.tables import model_table
from feta.readers.sklearn.pipeline import split_pipeline
from feta.rule import Threshold
from feta.scorer.counted.counted import Counted
from feta.scorer.counted.options import CountingOptions
from feta.scorer.protocol import Side
from feta.space.sampling import draw_people


def counted_model(
    source: Any,  # noqa: ANN401 - a function, or an object with predict
    schema: Schema,
    *,
    table: TableMaker | None = None,
    people: Matrix | None = None,
    options: CountingOptions | None = None,
    labels_only: bool = False,
) -> Model:
    """Return the model of a schema whose scores are the answers of a function.

    A tolerance needs numbers. Classes need labels, or one score per class. Two outcomes need
    their names, True and False, 1 and 0, probabilities, or, with `score` in [decision], numbers.
    With `labels_only`, the labels of `predict` are counted, without scores.
    """
    if schema.scaled and not getattr(source, "reads_encoded_rows", False):
        raise SchemaError(
            "a function takes raw columns; remove center and scale from the schema, and scale in "
            "the function"
        )
    reader = _Reader(
        source, schema, table, people, options or CountingOptions(), labels_only=labels_only
    )
    rule = schema.rule
    if rule.tolerance is not None:
        return Model(schema.space, reader.read(answers="scores"), rule, relation=schema.relation)
    if rule.classes:
        scorer = reader.of_classes(rule.classes)
        return Model(schema.space, scorer, rule, relation=schema.relation)
    names = (schema.decision.unfavorable, schema.decision.favorable)
    scorer, favors = reader.of_two_outcomes(names)
    equality = schema.decision.equality
    threshold = Threshold(0.0, favors, equality)  # type: ignore[arg-type]  # checked by the schema
    return Model(schema.space, scorer, threshold, outcomes=names, relation=schema.relation)


class _Reader:
    """What a function returns, and how that is read."""

    def __init__(
        self,
        source: Any,  # noqa: ANN401 - a function, or an object with predict
        schema: Schema,
        table: TableMaker | None,
        people: Matrix | None,
        options: CountingOptions,
        *,
        labels_only: bool,
    ) -> None:
        self.source, self.schema, self.table = source, schema, table
        self.people, self.options, self.labels_only = people, options, labels_only
        self.name = type(split_pipeline(source)[1]).__name__

    def read(self, **arguments: Any) -> Counted:  # noqa: ANN401 - of read_callable
        return read_callable(
            self.source,
            self.schema.space,
            table=self.table,
            people=self.people,
            options=self.options,
            **arguments,
        )

    @property
    def is_classifier(self) -> bool:
        return hasattr(self.source, "predict") and hasattr(self.source, "classes_")

    def of_classes(self, classes: Sequence[str]) -> Counted:
        """Read labels, or one score per class."""
        if self.is_classifier:
            self.schema.check_classes(list(self.source.classes_))
            return self.read(function="predict" if self.labels_only else "auto")
        array = self._first_answers()
        if array.ndim == 2:  # noqa: PLR2004 - one score per class
            return self.read(classes=classes)
        return self.read(classes=typed_labels(classes, array), answers="labels")

    def of_two_outcomes(self, names: tuple[str, str]) -> tuple[Counted, Side]:
        """Read labels, probabilities or scores; return the scorer and the favorable side."""
        decision = self.schema.decision
        favors: Side = "below" if decision.favors == "below" else "above"
        own_level = decision.score is None and decision.probability in (None, 0.5)
        if self.labels_only and not own_level:
            raise SchemaError(
                "[decision] has a threshold, but labels have none: got --method labels; expected "
                "threshold = 0.5, which is what predict decides, or --method counted"
            )
        if self.is_classifier:
            self.schema.check_classes(list(self.source.classes_))
            if own_level:
                return self.read(function="predict" if self.labels_only else "auto"), favors
        if hasattr(self.source, "predict") and not own_level:
            return self._at_level(), favors
        if decision.score is not None:
            return self.read(answers="scores", level=decision.score), favors
        return self._by_answers(names, favors)

    def _at_level(self) -> Counted:
        """Read the scores of an object that are compared with `score` or `threshold`."""
        decision = self.schema.decision
        if decision.score is not None:
            wanted, level = "decision_function", decision.score
            if not self.is_classifier and not hasattr(self.source, wanted):
                wanted = "predict"  # of a regressor
        else:
            assert decision.probability is not None  # else predict decides
            wanted, level = "predict_proba", decision.probability
        if not hasattr(self.source, wanted):
            key, other = ("score", "threshold = …, a probability")
            if decision.score is None:
                key, other = ("threshold", "score = …, a number for its decision_function")
            raise SchemaError(
                f"[decision]: {key} = {level!r} is compared with {wanted}: got {self.name}, which "
                f"has none; expected {other}, or threshold = 0.5, which is what predict decides"
            )
        return self.read(function=wanted, answers="scores", level=level)

    def _by_answers(self, names: tuple[str, str], favors: Side) -> tuple[Counted, Side]:
        """Find out from a sample what the function answers."""
        probability = self.schema.decision.probability
        level = 0.5 if probability is None else probability
        array = self._first_answers()
        if getattr(self.source, "end", "") == "scores" and array.ndim == 1:
            return self.read(answers="scores", level=_network_level(probability)), favors
        if array.ndim == 2 and array.shape[1] == 2:  # noqa: PLR2004 - two classes
            classes = names if favors == "above" else names[::-1]
            return self.read(answers="scores", level=level, classes=classes), favors
        given = array[answered(array)]
        if not given.size:
            raise NetworkError(
                "the function has no answer for any row of a sample: got nan; expected the names "
                "of the outcomes, 0 and 1, or probabilities"
            )
        read = labels_of(given, names, self.schema.decision.favors)
        if read is None or (array.dtype.kind == "f" and level != 0.5 and not read.named):  # noqa: PLR2004 - what labels mean
            check_probabilities(to_floats(given))
            return self.read(answers="scores", level=level), favors
        if level != 0.5:  # noqa: PLR2004 - what labels mean
            raise SchemaError(
                f"[decision]: threshold = {level!r} is a probability, but the function returns "
                f"labels: got {given[0]!r}; expected probabilities, or threshold = 0.5"
            )
        return self.read(classes=list(read.classes), answers="labels"), read.favors

    def _first_answers(self) -> Array:
        """Return what the function returns for a sample."""
        space = self.schema.space
        table = model_table(self.source, space, self.table)
        sample = draw_people(space, np.random.default_rng(0), SAMPLE)
        request = Request(
            self.source, space, table, sample, self.options, "auto", "auto", None, None
        )
        function = self.source.predict if hasattr(self.source, "predict") else self.source
        return request.first_answers(function)


def _network_level(probability: float | None) -> float:
    """Return the score of a network without probabilities at which a decision changes."""
    if probability in (None, 0.5):
        return 0.0
    raise SchemaError(
        f"the network gives no probabilities: got threshold = {probability}; expected 0.5, which "
        "is a score of 0, or score = … in [decision]"
    )
