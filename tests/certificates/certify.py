"""Certificates of small audits, and their results, for tests."""

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from campaigns.certificates import JAVASCRIPT
from feta.auditing.auditor import Auditor
from feta.auditing.block import blocks_in_memory
from feta.auditing.certify import Certification, CertifiedFacts
from feta.io.certificate_file import CertificateWriter
from feta.model import Model
from feta.vote.stored_votes import StoredVotes
from feta_check import command

Json = dict[str, Any]


def certify(
    folder: Path,
    model: Model,
    people: np.ndarray[Any, np.dtype[np.float64]],
    *,
    votes: StoredVotes | None = None,
    engine: str = "auto",
) -> Path:
    """Audit people and write the certificate."""
    folder.mkdir(exist_ok=True)
    auditor = Auditor(model, engine, votes=votes)
    findings = auditor.audit(people)
    with Certification(folder, auditor, CertifiedFacts()) as certification:
        for block in blocks_in_memory(people, len(people)):
            certification.write(block.audited(findings))
        certification.finish(complete=True)
    return folder


def claims_of(folder: Path) -> list[Json]:
    """Read the claims."""
    lines = (folder / "certificate.jsonl").read_bytes().splitlines()
    return [json.loads(line) for line in lines[1:-1]]


def seal(folder: Path, claims: Sequence[Json], **header: object) -> None:
    """Write claims under a valid seal."""
    path = folder / "certificate.jsonl"
    old = json.loads(path.read_bytes().splitlines()[0])
    writer = CertificateWriter(path, old | header)
    for claim in claims:
        writer.add(claim)
    writer.finish(complete=True)


def check(folder: Path, *options: str) -> int:
    """Return the exit code of the checker."""
    return command.main([str(folder), *options])


def check_with_javascript(folder: Path) -> int | None:
    """Return the exit code of the checker in JavaScript; None without Node."""
    node = shutil.which("node")
    if node is None:
        return None
    done = subprocess.run([node, str(JAVASCRIPT), str(folder)], capture_output=True, check=False)
    return done.returncode
