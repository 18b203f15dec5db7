"""The user's function as a runtime, to compare its decisions on the user's own table."""

from typing import Any

import numpy as np

from feta.arrays import Answers
from feta.errors import NetworkError
from feta.model import Model
from feta.readers.callable.ask import AskCallable
from feta.readers.callable.compare_rows import RowComparison
from feta.readers.callable.parse import as_array
from feta.readers.runtime import Runtime, SourceAnswers
from feta.scorer.counted.answers import RawAnswers
from feta.scorer.counted.counted import Counted


def counted_runtime(model: Model) -> Runtime:
    """Return a runtime that evaluates people with the function of a counted model.

    Pass it to `audit` as `replay`. The rows of the audited frame are then evaluated exactly as the
    frame holds them, and compared with the rows that FETA builds from encoded people.
    """
    scorer = model.scorer
    ask = scorer.evaluator.calls.ask if isinstance(scorer, Counted) else None
    if not isinstance(scorer, Counted) or not isinstance(ask, AskCallable):
        raise NetworkError(
            f"the model is not counted: got {type(scorer).__name__}; expected the scorer of "
            "read_callable; use feta.runtime_of for other models"
        )

    def run(rows: Any) -> SourceAnswers:  # noqa: ANN401 - a frame or an array
        return SourceAnswers(_decide(model, scorer, ask, rows))

    table = ask.table
    name = f"{scorer.name} {'itself' if ask.predict is None else 'themselves'}"
    compare = RowComparison(scorer, ask, name)
    return Runtime(name, run, table.make, table.names, table.as_frame, compare)


def _decide(model: Model, scorer: Counted, ask: AskCallable, rows: Any) -> Answers:  # noqa: ANN401 - a frame or an array
    if ask.predict is not None and ask.classes is not None and _default_level(model):
        labels = as_array(ask.predict(rows)).reshape(-1)
        return model.rule.answers_of_labels(labels, ask.classes)
    answers = ask.answer(rows, len(rows))
    _check(answers, scorer.name)
    scores = answers.values @ scorer.directions.T + scorer.offsets
    return model.rule.answers_of_outputs(scores, probabilities=False)


def _default_level(model: Model) -> bool:
    """Return whether `predict` decides as the rule: scores are compared with 0 or each other."""
    return model.rule.threshold is None or model.rule.threshold == 0.0


def _check(answers: RawAnswers, name: str) -> None:
    if not answers.problems:
        return
    row = int(np.min(list(answers.problems)))
    raise NetworkError(f"{name} has no valid answer for row {row + 1}: {answers.problems[row]}")
