"""ONNX runtime: a graph's own scores, to replay people in the runtime that the model was made for."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from feta.arrays import Matrix
from feta.errors import NetworkError

# A fixed number of rows beyond this is not filled up to replay a single one.
MOST_FIXED_ROWS = 1024


def onnx_scores(path: str | Path) -> Callable[[Matrix], Matrix] | None:
    """Give a function that scores rows in onnxruntime, or None where that cannot be.

    That is where it is not installed, or refuses the file.

    It returns the graph's own outputs, (rows, outputs): probabilities if the graph ends in them.
    """
    try:
        import onnxruntime  # noqa: PLC0415 - an extra
    except ImportError:
        return None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4  # what it would print is not for the user
    try:
        session = onnxruntime.InferenceSession(str(path), options, ["CPUExecutionProvider"])
        entry = session.get_inputs()[0]
        score = _Session(session, entry.name, entry.type == "tensor(double)", entry.shape[0])
        score(np.zeros((1, entry.shape[1])))
    except Exception:  # onnxruntime's errors share no other class; without it nothing is replayed
        return None
    return score


@dataclass(frozen=True, slots=True)
class _Session:
    """A graph opened in onnxruntime."""

    session: Any
    entry: str
    double: bool
    rows: int | str | None  # the graph's own number of rows, where that is fixed

    def __call__(self, rows: Matrix) -> Matrix:
        """Give the first output, (rows, outputs)."""
        if not isinstance(self.rows, int):
            return self._run(rows)
        if not 1 <= self.rows <= MOST_FIXED_ROWS:
            raise NetworkError(f"the graph must take a moderate number of rows, got {self.rows}")
        filled = [np.repeat(row[None, :], self.rows, axis=0) for row in rows]
        return np.concatenate([self._run(batch)[:1] for batch in filled])

    def _run(self, rows: Matrix) -> Matrix:
        with np.errstate(over="ignore"):  # float32 may not hold what people's units reach
            entry = rows.astype(np.float64 if self.double else np.float32)
        output = np.asarray(self.session.run(None, {self.entry: entry})[0], np.float64)
        return output.reshape(len(rows), -1)
