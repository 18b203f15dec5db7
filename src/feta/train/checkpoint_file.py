"""Checkpoint file: the state of a training, from which an interrupted training resumes.

Arrays and a JSON text in the safetensors format, like a model file; it cannot contain code.
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
from feta.io.regular_file import atomic_write, read_bytes

FORMAT = "feta-training"

# Seconds between two writes, and so the work that an interruption can lose.
EVERY = 1.0

Arrays = dict[str, Matrix]


class Checkpoint:
    """A file with the state of one training; without a path nothing is stored."""

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
        """Return the stored state, if any; raise if it belongs to another training."""
        if self.path is None or not self.path.exists():
            return None
        from safetensors import SafetensorError  # noqa: PLC0415 - only where a file is touched
        from safetensors.numpy import load  # noqa: PLC0415 - only where a file is touched

        content = read_bytes(self.path)
        try:
            arrays = dict(load(content))
            length = int.from_bytes(content[:8], "little")
            content_json = json.loads(json.loads(content[8 : 8 + length])["__metadata__"][FORMAT])
            same = content_json["digest"] == self.digest
        except (SafetensorError, KeyError, TypeError, ValueError):
            raise NetworkError(
                f"{self.path}: the file is not a checkpoint of a training; "
                "delete it, or name another"
            ) from None
        if not same:
            raise NetworkError(
                f"{self.path}: the checkpoint belongs to another training: "
                "its data or settings differ; delete it, or name another"
            )
        return arrays, content_json["state"]

    def due(self, *, last: bool) -> bool:
        """Return whether to write now: at the end, or some time after the last write."""
        return self.path is not None and (last or time.monotonic() >= self._written + EVERY)

    def save(self, arrays: Mapping[str, Matrix], state: Mapping[str, object]) -> None:
        """Write the state atomically."""
        assert self.path is not None  # otherwise `due` is never true
        from safetensors.numpy import save  # noqa: PLC0415 - only where a file is touched

        text = json.dumps({"digest": self.digest, "state": state})
        contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
        with atomic_write(self.path) as part:
            part.write_bytes(save(contiguous, {FORMAT: text}))
        self._written = time.monotonic()
