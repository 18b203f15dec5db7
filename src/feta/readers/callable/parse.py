"""Answers of the user's function as numbers: scores, or one indicator per class for labels."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from feta.arrays import Array, Flags, Matrix, Vector
from feta.errors import MAX_SHOWN_NAMES
from feta.rounding import AGREEMENT, AGREEMENT_FLOAT32
from feta.scorer.counted.answers import InvalidAnswers, RawAnswers
from feta.space.cell_values import to_number

# Maximum characters of an answer in a message.
MAX_CHARACTERS = 60


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """A function that returns numbers, one per output.

    `names` are the classes of several outputs: the columns of a frame are found by them.
    """

    n_answers: int
    names: tuple[str, ...] = ()
    rounding: float | None = None  # the relative error of the function, if it is known

    def show(self, values: Vector) -> str:
        """Return the numbers of one row, for messages."""
        texts = [repr(value) for value in values.tolist()]
        return texts[0] if len(texts) == 1 else f"({', '.join(texts)})"

    def parse(self, answers: Any, n_rows: int) -> RawAnswers:  # noqa: ANN401 - anything
        """Return the numbers; rows with others than finite ones have a problem."""
        array = as_array(_ordered(answers, self.names) if self.n_answers > 1 else answers)
        if not _fits(array, n_rows, self.n_answers):
            expected = "1 number" if self.n_answers == 1 else f"{self.n_answers} numbers"
            raise _wrong_length(array, n_rows, expected)
        values = to_floats(array).reshape(n_rows, self.n_answers)
        finite = np.isfinite(values)
        problems = {
            row: f"the model answered {_shown(array.reshape(n_rows, -1)[row])}; expected finite "
            "numbers"
            for row in np.flatnonzero(~finite.all(axis=1)).tolist()
        }
        short = array.dtype.kind == "f" and array.dtype.itemsize < 8  # noqa: PLR2004 - float64
        rounding = self.rounding or (AGREEMENT_FLOAT32 if short else AGREEMENT)
        return RawAnswers(np.where(finite, values, 0.0) + 0.0, problems, rounding)


@dataclass(frozen=True, slots=True, eq=False)
class Labels:
    """A function that returns one of several labels: the indicators of the classes."""

    classes: Array

    @property
    def n_answers(self) -> int:
        """One indicator per class."""
        return len(self.classes)

    def show(self, values: Vector) -> str:
        """Return the label of one row, for messages."""
        return repr(self.classes[int(np.argmax(values))])

    def parse(self, answers: Any, n_rows: int) -> RawAnswers:  # noqa: ANN401 - anything
        """Return 1 for the label and 0 for the others; unknown labels are a problem."""
        array = as_array(answers)
        if not _fits(array, n_rows, 1):
            raise _wrong_length(array, n_rows, "1 label")
        labels = array.reshape(-1)
        indicators = np.stack([_equal(labels, label) for label in self.classes.tolist()], axis=1)
        known = indicators.sum(axis=1) == 1
        shown = " or ".join(repr(label) for label in self.classes[:MAX_SHOWN_NAMES].tolist())
        problems = {
            row: f"the model answered the label {_shown(labels[row : row + 1])}; expected {shown}"
            for row in np.flatnonzero(~known).tolist()
        }
        return RawAnswers(np.where(known[:, None], indicators, 0.0), problems)


Parser = Scores | Labels


def as_array(answers: Any) -> Array:  # noqa: ANN401 - anything that a function returns
    """Return answers as an array; one of objects if they have different types or lengths.

    A masked answer is no answer.
    """
    if isinstance(answers, np.ma.MaskedArray):
        missing: Any = np.nan if answers.dtype.kind == "f" else None
        given = answers.data if answers.dtype.kind == "f" else answers.data.astype(object)
        return np.where(np.ma.getmaskarray(answers), np.array(missing, given.dtype), given)
    try:
        array = np.asarray(answers)
    except (TypeError, ValueError):
        return np.array([answers], dtype=object)
    if array.dtype.kind in "US" and isinstance(answers, list | tuple):  # numbers became texts
        return np.array(answers, dtype=object)
    return array


def to_floats(array: Array) -> Matrix:
    """Return numbers as float64; NaN where an answer is not a number."""
    if array.dtype.kind in "iufb":
        return array.astype(np.float64)
    if array.dtype.kind in "mM":  # times are no numbers
        return np.full(array.shape, np.nan)
    flat = [to_number(value) for value in array.reshape(-1).tolist()]
    return np.array(flat, dtype=np.float64).reshape(array.shape)


def answered(array: Array) -> Flags:
    """Return which cells are answers; None, NaN and pandas' NA are none."""
    if array.dtype.kind in "iubUS":
        return np.ones(array.shape, dtype=bool)
    import pandas as pd  # noqa: PLC0415 - import feta stays light

    return np.asarray(pd.notna(array), dtype=bool)


def label_name(label: object) -> str:
    """Return a label as a schema writes it: 1.0 is "1"."""
    whole = isinstance(label, float) and label.is_integer()
    return str(int(label)) if whole and isinstance(label, float) else str(label)


def _ordered(answers: Any, names: tuple[str, ...]) -> Any:  # noqa: ANN401 - anything
    """Return the columns of a frame in the order of the classes; anything else as it is."""
    columns = list(getattr(answers, "columns", ()))
    if not columns or columns == list(range(len(columns))):  # no frame, or one without names
        return answers
    found = {label_name(column): column for column in columns}
    if set(found) != set(names) or len(found) != len(columns):
        shown = ", ".join(repr(column) for column in columns[:MAX_SHOWN_NAMES])
        expected = ", ".join(repr(name) for name in names) or "classes=[…] that names them"
        raise InvalidAnswers(
            f"the model returned the columns {shown}; expected {expected}; return the columns of "
            "all classes, or an array in their order"
        )
    return answers[[found[name] for name in names]]


def _equal(labels: Array, label: object) -> Matrix:
    """Return 1.0 where labels equal one label; NaN and other types do not."""
    equal: Any = labels == label
    if np.shape(equal) != labels.shape:  # numpy compares texts with numbers as a whole
        return np.zeros(len(labels))
    return np.asarray(equal == True, dtype=np.float64)  # noqa: E712 - pandas' NA is neither


def _fits(array: Array, n_rows: int, n_answers: int) -> bool:
    """Return whether there is one answer per row; for one row, axes may be squeezed."""
    shapes: set[tuple[int, ...]] = {(n_rows, n_answers)}
    if n_answers == 1:
        shapes.add((n_rows,))
    if n_rows == 1:
        shapes |= {(n_answers,)} | ({()} if n_answers == 1 else set())
    return array.shape in shapes


def _wrong_length(array: Array, n_rows: int, expected: str) -> InvalidAnswers:
    return InvalidAnswers(
        f"the model returned answers of the shape {array.shape} for {n_rows:,} rows; expected "
        f"{expected} per row"
    )


def _shown(cells: Array) -> str:
    texts = [repr(value) for value in cells.tolist()]
    text = texts[0] if len(texts) == 1 else f"({', '.join(texts)})"
    return text if len(text) <= MAX_CHARACTERS else f"{text[:MAX_CHARACTERS]} …"
