"""Checkpoint file: where a training stands, so that it goes on at its epoch when it was interrupted.

Arrays and a JSON text in the safetensors format, as a model file; nothing in it can run.
"""

import hashlib
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from feta.arrays import Matrix
from feta.errors import NetworkError
from feta.io.part_file import written_whole
from feta.io.read_bytes import read_bytes

FORMAT = "feta-training"

# Seconds between two writings: what an interruption costs at most.
EVERY = 1.0

Arrays = dict[str, Matrix]


class Checkpoint:
    """A file that keeps one training's state; without a path nothing is kept."""

    def __init__(
        self, path: str | Path | None, about: Mapping[str, object], *arrays: Matrix
    ) -> None:
        self.path = None if path is None else Path(path)
        digest = hashlib.sha256(json.dumps(about, sort_keys=True, default=repr).encode())
        for array in arrays:
            digest.update(np.ascontiguousarray(array, dtype="<f8").tobytes())
        self.digest = digest.hexdigest()
        self._written = time.monotonic()

    def load(self) -> tuple[Arrays, dict[str, Any]] | None:
        """Give the state to go on from, if there is any; refuse that of another training."""
        if self.path is None or not self.path.exists():
            return None
        from safetensors import SafetensorError  # noqa: PLC0415 - only where a file is touched
        from safetensors.numpy import load  # noqa: PLC0415 - only where a file is touched

        content = read_bytes(self.path)
        try:
            arrays = dict(load(content))
            length = int.from_bytes(content[:8], "little")
            told = json.loads(json.loads(content[8 : 8 + length])["__metadata__"][FORMAT])
            same = told["digest"] == self.digest
        except (SafetensorError, KeyError, TypeError, ValueError):
            message = f"{self.path}: the file must be a checkpoint of a training; delete it, or name another"
            raise NetworkError(message) from None
        if not same:
            message = f"{self.path}: the checkpoint must be of this training, but its data or settings differ; delete it, or name another"
            raise NetworkError(message)
        return arrays, told["state"]

    def due(self, *, last: bool) -> bool:
        """Say whether the state is to be written now: at the end, or some time after the last one."""
        return self.path is not None and (last or time.monotonic() >= self._written + EVERY)

    def save(self, arrays: Mapping[str, Matrix], state: Mapping[str, object]) -> None:
        """Write the state, at once or not at all."""
        assert self.path is not None  # else it is never due
        from safetensors.numpy import save  # noqa: PLC0415 - only where a file is touched

        told = json.dumps({"digest": self.digest, "state": state})
        whole = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
        with written_whole(self.path) as part:
            part.write_bytes(save(whole, {FORMAT: told}))
        self._written = time.monotonic()
