"""ONNX runtime: a graph's own scores, to replay people in the runtime that the model was made for."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from feta.arrays import Matrix
from feta.errors import NetworkError

# A fixed number of rows beyond this is not filled up to replay a single one.
MAX_FIXED_ROWS = 1024


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
        entries = tuple(
            Entry(one.name, KINDS[one.type], one.shape[1]) for one in session.get_inputs()
        )
        score = _Session(session, entries, session.get_inputs()[0].shape[0])
        score(np.zeros((1, sum(one.width for one in entries))))
    except Exception:  # onnxruntime's errors share no other class; without it nothing is replayed
        return None
    return score


KINDS: dict[str, type[np.generic]] = {
    "tensor(double)": np.float64,
    "tensor(float)": np.float32,
    "tensor(int32)": np.int32,
    "tensor(int64)": np.int64,
}


@dataclass(frozen=True, slots=True)
class Entry:
    """One of a graph's inputs."""

    name: str
    kind: type[np.generic]
    width: int


@dataclass(frozen=True, slots=True)
class _Session:
    """A graph opened in onnxruntime; its inputs are taken from rows side by side."""

    session: Any
    entries: tuple[Entry, ...]
    rows: int | str | None  # the graph's own number of rows, where that is fixed

    def __call__(self, rows: Matrix) -> Matrix:
        """Give the first output, (rows, outputs)."""
        if not isinstance(self.rows, int):
            return self._run(rows)
        if not 1 <= self.rows <= MAX_FIXED_ROWS:
            raise NetworkError(f"the graph must take a moderate number of rows, got {self.rows}")
        filled = [np.repeat(row[None, :], self.rows, axis=0) for row in rows]
        return np.concatenate([self._run(batch)[:1] for batch in filled])

    def _run(self, rows: Matrix) -> Matrix:
        feeds, start = {}, 0
        with np.errstate(over="ignore"):  # float32 may not hold what people's units reach
            for one in self.entries:
                feeds[one.name] = rows[:, start : start + one.width].astype(one.kind)
                start += one.width
        output = np.asarray(self.session.run(None, feeds)[0], np.float64)
        return output.reshape(len(rows), -1)
