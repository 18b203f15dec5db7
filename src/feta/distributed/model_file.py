"""A `.feta` file by path and digest: small to send, opened once per process, never mistaken."""

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Self

from feta.errors import FetaError, NetworkError
from feta.io.model_file import votes_of_bytes
from feta.io.regular_file import read_bytes
from feta.model import Model
from feta.vote.stored_votes import StoredVotes

# Files that a process keeps open.
MAX_OPEN = 16


@dataclass(frozen=True, slots=True)
class ModelFile:
    """The path of a model file, and the SHA-256 of its content."""

    path: str
    sha256: str

    @classmethod
    def of(cls, path: str | Path) -> Self:
        """Return a file with its present digest."""
        return cls(str(path), _digest(path))

    def load(self) -> tuple[Model, StoredVotes]:
        """Return the model and its votes; raise if the file is another one than it was."""
        return _load(self.path, self.sha256)


@lru_cache(maxsize=MAX_OPEN)
def _load(path: str, sha256: str) -> tuple[Model, StoredVotes]:
    content = read_bytes(Path(path))
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise NetworkError(
            f"{path}: the file has changed: got the SHA-256 {found[:16]}…; expected "
            f"{sha256[:16]}…; give all processes the same file, or start again with this one"
        )
    try:
        return votes_of_bytes(content)
    except FetaError as error:
        raise NetworkError(f"{path}: {error}") from None


def _digest(path: str | Path) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()
