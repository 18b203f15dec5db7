"""Reader of any function that predicts: nothing is read, every counterpart is evaluated."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from feta.arrays import Matrix, Vector
from feta.errors import NetworkError, SchemaError
from feta.io.raw_table import TableMaker
from feta.readers.callable.ask import AskCallable
from feta.readers.callable.choose import Chosen, Function, Kind, Request
from feta.readers.callable.tables import ModelTable, model_table
from feta.scorer.counted.calls import ModelCalls, fastest_batch
from feta.scorer.counted.counted import Counted
from feta.scorer.counted.evaluator import CHUNK, Evaluator
from feta.scorer.counted.options import CountingOptions
from feta.scorer.counted.sentinels import Sentinels
from feta.space.feature_space import FeatureSpace
from feta.space.sampling import draw_people

# People drawn from the space, whose answers show what the function returns.
SAMPLE = 256

# Rows that identify the function, and from which the sentinels are chosen.
PROBES = 16

# Memory of one batch, and of one cell: an object of Python and its reference.
BATCH_BYTES = 2**26
CELL_BYTES = 64


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
        The function of an object that decides. With "auto", `predict` decides; `decision_function`
        or `predict_proba` gives the scores of gaps, if it implies what `predict` decides on a
        sample. A row on which both disagree is undecided; "predict" counts the labels alone.
    answers
        What a function returns: "scores" (numbers; one per class for several classes) or "labels".
        "auto" looks at a sample: numbers other than 0 and 1 are scores, unless there are only one
        or two different whole ones, which need `classes`.
    classes
        The labels, the unfavorable one first. An estimator has them itself. The columns of an
        answered frame are found by these names.
    level
        The number from which on a probability or a score is favorable: a tie is favorable, unless
        the rule has another `equality`. The score is the distance from it. A classifier's
        `predict_proba` is compared with it, or the `function` that is named, and `predict` is
        not called. None: a score is compared with the threshold of the rule, 0 by default.
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
    drawn = draw_people(space, np.random.default_rng(0), SAMPLE)
    sample = _with_people(drawn, people)
    made = model_table(source, space, table)
    request = Request(source, space, made, sample, options, function, answers, classes, level)
    chosen = request.choose()
    ask = AskCallable(made, chosen.function, chosen.parser, chosen.predict, chosen.labels)
    calls = ModelCalls(ask, space, options)
    sentinels = Sentinels.choose(calls, sample[:PROBES])
    _check_answers(calls, sample[:PROBES], chosen.name)
    probes = drawn[:PROBES]  # the same ones for every table of people
    probed = calls.evaluate(probes, [len(probes)])
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
        link="share" if _gives_shares(source, chosen) and level is None else "identity",
        version=version,
    )


def _gives_shares(source: object, chosen: Chosen) -> bool:
    """Return whether the answers are one probability per class."""
    return bool(getattr(source, "gives_shares", chosen.shares))


def _with_people(drawn: Matrix, people: Matrix | None) -> Matrix:
    """Return rows of the user's table, evenly spaced, before the drawn ones."""
    if people is None or not len(people):
        return drawn
    rows = np.linspace(0, len(people) - 1, min(len(people), SAMPLE)).astype(np.int64)
    return np.concatenate([np.asarray(people, dtype=np.float64)[rows], drawn])


def _check_answers(calls: ModelCalls, people: Matrix, name: str) -> None:
    """Raise unless the function has a valid answer for some row."""
    answers = calls.evaluate(people, [len(people)])
    if len(answers.problems) < len(people):
        return
    row, problem = next(iter(answers.problems.items()))
    raise NetworkError(
        f"{name} has no valid answer for any row of a sample: got, for the row "
        f"({calls.describe(people[row])}): {problem}; expected finite numbers or known labels"
    )


def _largest_batch(table: ModelTable) -> int:
    n_columns = len(table.columns if table.names is None else table.names)
    return max(1, min(CHUNK, BATCH_BYTES // (CELL_BYTES * max(1, n_columns))))


def _directions(chosen: Chosen, level: float | None) -> tuple[Matrix, Vector]:
    n_answers = chosen.parser.n_answers
    if level is None:
        return np.eye(n_answers), np.zeros(n_answers)
    if not chosen.has_scores or n_answers > 2 or not np.isfinite(level):  # noqa: PLR2004 - a pair
        raise SchemaError(
            f"invalid level: got level={level!r} for {chosen.name} with {n_answers} answers per "
            "row; expected a finite number, for one score or the probabilities of two classes"
        )
    return np.eye(n_answers)[-1:], np.array([-float(level)])
