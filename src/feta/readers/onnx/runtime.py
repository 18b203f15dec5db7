"""Scores of an ONNX graph in onnxruntime, to replay people in the model's own runtime."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from feta.arrays import Matrix
from feta.errors import NetworkError

# Largest fixed number of rows to which a single row is repeated.
MAX_FIXED_ROWS = 1024

DTYPES: dict[str, type[np.generic]] = {
    "tensor(double)": np.float64,
    "tensor(float)": np.float32,
    "tensor(int32)": np.int32,
    "tensor(int64)": np.int64,
}


def onnx_scores(path: str | Path) -> Callable[[Matrix], Matrix] | None:
    """Return a function that scores rows in onnxruntime.

    None if onnxruntime is not installed or rejects the file. The function returns the graph's
    outputs, (rows, outputs): probabilities if the graph ends in them.
    """
    try:
        import onnxruntime  # noqa: PLC0415 - an extra
    except ImportError:
        return None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4  # its log messages are not for the user
    try:
        session = onnxruntime.InferenceSession(str(path), options, ["CPUExecutionProvider"])
        entries = tuple(
            GraphInput(entry.name, DTYPES[entry.type], entry.shape[1])
            for entry in session.get_inputs()
        )
        score = _Session(session, entries, session.get_inputs()[0].shape[0])
        score(np.zeros((1, sum(entry.width for entry in entries))))
    except Exception:  # onnxruntime's errors share no other class; nothing is replayed then
        return None
    return score


@dataclass(frozen=True, slots=True)
class GraphInput:
    """One input of a graph."""

    name: str
    dtype: type[np.generic]
    width: int


@dataclass(frozen=True, slots=True)
class _Session:
    """A graph opened in onnxruntime; each of its inputs takes some of a row's columns."""

    session: Any
    entries: tuple[GraphInput, ...]
    n_rows: int | str | None  # the graph's number of rows, if it is fixed

    def __call__(self, rows: Matrix) -> Matrix:
        """Return the first output, (rows, outputs)."""
        if not isinstance(self.n_rows, int):
            return self._run(rows)
        if not 1 <= self.n_rows <= MAX_FIXED_ROWS:
            raise NetworkError(
                f"the graph has an unsupported fixed number of rows: got {self.n_rows}; "
                f"expected 1 to {MAX_FIXED_ROWS}"
            )
        batches = [np.repeat(row[None, :], self.n_rows, axis=0) for row in rows]
        return np.concatenate([self._run(batch)[:1] for batch in batches])

    def _run(self, rows: Matrix) -> Matrix:
        feeds, start = {}, 0
        with np.errstate(over="ignore"):  # raw units may exceed float32
            for entry in self.entries:
                feeds[entry.name] = rows[:, start : start + entry.width].astype(entry.dtype)
                start += entry.width
        output = np.asarray(self.session.run(None, feeds)[0], np.float64)
        return output.reshape(len(rows), -1)
