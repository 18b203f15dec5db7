"""The published file of a dataset, its checksum and its terms."""

import hashlib
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DatasetSource:
    """One file at an address, with its checksum (kind:digits) and its terms of use.

    `members` are the files to read from a zip archive. `stand_in` is an incomplete file that a
    user's folder may contain instead.
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
        """The path of the file in the user's folder."""
        return f"{self.folder}/{self.file}"

    def checksum_of(self, content: bytes) -> str:
        """Compute the checksum of the kind that the source states."""
        kind, _ = self.checksum.split(":")
        if kind == "git-blob":  # as GitHub lists it: SHA-1 of a short header and the file
            blob = b"blob %d\0" % len(content) + content
            return f"{kind}:{hashlib.sha1(blob, usedforsecurity=False).hexdigest()}"
        return f"{kind}:{hashlib.new(kind, content).hexdigest()}"
