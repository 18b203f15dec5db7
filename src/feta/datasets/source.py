"""Source: the file a dataset comes from, its checksum and its terms."""

import hashlib
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DatasetSource:
    """One file at an address, its checksum (kind:digits) and terms.

    `members` are the files wanted from a zip; `stand_in` is a lesser file that a user's folder may have.
    """

    title: str
    folder: str
    file: str
    address: str
    checksum: str
    terms: str
    members: tuple[str, ...] = ()
    stand_in: str = ""

    @property
    def place(self) -> str:
        """Where the file goes in the user's folder."""
        return f"{self.folder}/{self.file}"

    def checksum_of(self, content: bytes) -> str:
        """Compute the same kind of checksum as the source's own."""
        kind, _ = self.checksum.split(":")
        if kind == "git-blob":  # what GitHub lists for a file: SHA-1 over a short head and the file
            blob = b"blob %d\0" % len(content) + content
            return f"{kind}:{hashlib.sha1(blob, usedforsecurity=False).hexdigest()}"
        return f"{kind}:{hashlib.new(kind, content).hexdigest()}"
