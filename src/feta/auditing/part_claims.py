"""Claims about a part of the rows, which one certificate about all parts will contain."""

from typing import IO

from feta.auditing.block import AuditedBlock
from feta.auditing.claims import Claims
from feta.io.canonical_json import canonical
from feta.model import Model

# The ending of a part's file.
CLAIMS = "claims.jsonl"


class PartClaims:
    """Writer of the claims of one part, one line each."""

    def __init__(self, model: Model) -> None:
        self._claims = Claims(model)

    def write(self, audited: AuditedBlock, stream: IO[str]) -> None:
        """Add the claims about one block."""
        for claim in self._claims.of_block(audited):
            stream.write(canonical(claim).decode("ascii") + "\n")
