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
from feta.readers.callable.parse import to_floats
from feta.readers.callable.read import SAMPLE, read_callable
from feta.readers.callable.tables import model_table
from feta.rule import Threshold
from feta.scorer.counted.counted import Counted
from feta.scorer.counted.options import CountingOptions
from feta.space.sampling import draw_people


def counted_model(
    source: Any,  # noqa: ANN401 - a function, or an object with predict
    schema: Schema,
    *,
    table: TableMaker | None = None,
    people: Matrix | None = None,
    options: CountingOptions | None = None,
) -> Model:
    """Return the model of a schema whose scores are the answers of a function.

    A tolerance needs numbers. Classes need labels, or one score per class. Two outcomes need
    their names, True and False, 1 and 0, probabilities, or, with `score` in [decision], numbers.
    """
    if schema.scaled and not getattr(source, "reads_encoded_rows", False):
        raise SchemaError(
            "a function takes raw columns; remove center and scale from the schema, and scale in "
            "the function"
        )
    reader = _Reader(source, schema, table, people, options or CountingOptions())
    rule = schema.rule
    if rule.tolerance is not None:
        return Model(schema.space, reader.read(answers="scores"), rule)
    if rule.classes:
        scorer = reader.of_classes(rule.classes)
        return Model(schema.space, scorer, rule)
    names = (schema.decision.unfavorable, schema.decision.favorable)
    scorer, favors = reader.of_two_outcomes(names)
    threshold = Threshold(0.0, favors, schema.decision.equality)  # type: ignore[arg-type]  # checked by the schema
    return Model(schema.space, scorer, threshold, outcomes=names)


class _Reader:
    """What a function returns, and how that is read."""

    def __init__(
        self,
        source: Any,  # noqa: ANN401 - a function, or an object with predict
        schema: Schema,
        table: TableMaker | None,
        people: Matrix | None,
        options: CountingOptions,
    ) -> None:
        self.source, self.schema, self.table = source, schema, table
        self.people, self.options = people, options

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
            return self.read()
        array = self._first_answers()
        if array.ndim == 2:  # noqa: PLR2004 - one score per class
            return self.read(classes=classes)
        return self.read(classes=_typed(classes, array), answers="labels")

    def of_two_outcomes(self, names: tuple[str, str]) -> tuple[Counted, str]:
        """Read labels, probabilities or scores; return the scorer and the favorable side."""
        decision = self.schema.decision
        favors = decision.favors or "above"
        level = 0.5 if decision.probability is None else decision.probability
        if self.is_classifier:
            self.schema.check_classes(list(self.source.classes_))
            predicts = decision.score is None and decision.probability in (None, 0.5)
            return self.read(level=None if predicts else decision.score or level), favors
        if decision.score is not None:
            return self.read(answers="scores", level=decision.score), favors
        array = self._first_answers()
        if getattr(self.source, "end", "") == "scores" and array.ndim == 1:
            return self.read(answers="scores", level=_network_level(decision.probability)), favors
        if array.ndim == 2 and array.shape[1] == 2:  # noqa: PLR2004 - two classes
            return self.read(answers="scores", level=level), favors
        numbers = to_floats(array)
        if array.dtype.kind == "f" and np.isnan(numbers).all():
            raise NetworkError(
                "the function has no answer for any row of a sample: got nan; expected the names "
                "of the outcomes, 0 and 1, or probabilities"
            )
        if array.ndim == 2 or np.isnan(numbers).all():  # noqa: PLR2004 - rows and outputs
            return self.read(classes=_typed(names, array), answers="labels"), "above"
        if array.dtype.kind in "biu" or np.isin(numbers, (0.0, 1.0)).all():
            labels = [False, True] if array.dtype.kind == "b" else [0, 1]
            return self.read(classes=labels, answers="labels"), favors
        finite = numbers[np.isfinite(numbers)]
        if ((finite < 0) | (finite > 1)).any():
            worst = float(finite[np.argmax(np.abs(finite - 0.5))])
            raise SchemaError(
                f"the function returns no probabilities: got {worst!r}; expected numbers from 0 "
                "to 1; write score = … in [decision], the number above which a score is favorable"
            )
        return self.read(answers="scores", level=level), favors

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


def _typed(names: Sequence[str], answers: Array) -> list[object]:
    """Return the names of the schema as the labels that the function returns.

    A schema has texts, where a function may return numbers or booleans.
    """
    labels = {str(label): label for label in answers.reshape(-1).tolist()}
    unknown = [label for label in labels if label not in names]
    if unknown and all(label not in names for label in labels):
        raise NetworkError(
            f"the function returns other labels: got {labels[unknown[0]]!r}; expected one of "
            f"{', '.join(map(repr, names))}; name them in [decision]"
        )
    kinds = {type(label) for name, label in labels.items() if name in names}
    kind = kinds.pop() if len(kinds) == 1 else str
    return [labels.get(name, _converted(name, kind)) for name in names]


def _converted(name: str, kind: type) -> object:
    """Return the label of a class that the sample does not contain."""
    if kind is bool:
        return name == "True"
    try:
        return kind(name)
    except (TypeError, ValueError):
        return name
