"""Certification: the certificate of an audit, with the schema and the model that it is about."""

import hashlib
import json
import os
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Self

from feta.auditing.auditor import Auditor
from feta.auditing.block import AuditedBlock
from feta.auditing.claims import Claims
from feta.errors import SchemaError
from feta.io.canonical_json import Json, canonical, exact_json
from feta.io.certificate_file import (
    CERTIFICATE,
    MODEL,
    SCHEMA,
    SIGNATURE,
    CertificateWriter,
)
from feta.io.model_file import describe_attribute, describe_rule, model_bytes
from feta.io.table_options import TableOptions
from feta.model import Model
from feta.predict.fair_predictor import FairPredictor
from feta.vote.stored_votes import StoredVotes

# The relation of all models so far; a checker knows no other.
ALL_SENSITIVE_VALUES = "all sensitive values"

FILES = (CERTIFICATE, SCHEMA, MODEL)


@dataclass(frozen=True, slots=True)
class CertifiedFacts:
    """What an audit knows besides its model: the table, its reading options, and the time."""

    data_sha256: str | None = None
    table: TableOptions | None = None
    with_model: bool = True
    now: datetime | None = None  # None: the time of the machine

    @property
    def date(self) -> str:
        """The date in UTC."""
        return (self.now or datetime.now(UTC)).date().isoformat()


class Certification:
    """Writer of certificate, schema and model; they appear complete at the end, or not at all."""

    def __init__(self, folder: Path, auditor: Auditor, facts: CertifiedFacts) -> None:
        """Start the files; nothing else may write to the folder."""
        self.folder = folder
        for name in FILES:  # of a killed audit
            for part in folder.glob(f".{name}.*part"):
                part.unlink(missing_ok=True)
        self._token = f"{os.getpid()}-{secrets.token_hex(4)}"
        self._claims = Claims(auditor.model)
        votes = auditor.votes or StoredVotes(weights=auditor.weights)
        schema = canonical(schema_json(auditor.model))
        content = _stored_model(auditor.model, votes, facts.table)
        self._part(SCHEMA).write_bytes(schema)
        if content is not None and facts.with_model:
            self._part(MODEL).write_bytes(content)
        elif (folder / MODEL).exists():
            raise SchemaError(
                f"a model is in the folder of a certificate without one: got {folder / MODEL}; "
                "expected no such file; move it, or name another folder"
            )
        header = _header(auditor.model, votes, facts)
        header |= {"model_sha256": _sha256(content), "schema_sha256": _sha256(schema)}
        self._writer = CertificateWriter(self._part(CERTIFICATE), header)

    def write(self, audited: AuditedBlock) -> None:
        """Add the claims about one block."""
        for claim in self._claims.of_block(audited):
            self._writer.add(claim)

    def append(self, part: Path) -> None:
        """Add the claims that `PartClaims` wrote about a part of the rows."""
        with part.open("rb") as lines:
            for line in lines:
                claim = line.removesuffix(b"\n")
                self._writer.add_line(claim, json.loads(claim)["verdict"])

    def seal(self, *, complete: bool) -> str:
        """Write the end line, and return the digest that identifies the certificate."""
        return self._writer.finish(complete=complete)

    def finish(self, *, complete: bool) -> None:
        """Seal the certificate, and put it in its place."""
        self.seal(complete=complete)
        self.publish()

    def publish(self) -> None:
        """Rename the sealed files; an older signature is deleted."""
        (self.folder / SIGNATURE).unlink(missing_ok=True)
        for name in FILES:
            if self._part(name).exists():
                self._part(name).replace(self.folder / name)

    def _part(self, name: str) -> Path:
        return self.folder / f".{name}.{self._token}.part"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.close()
        for name in FILES:
            self._part(name).unlink(missing_ok=True)


def remove_certificate(folder: Path) -> None:
    """Delete the certificate of an older audit, which would not belong to a newer one."""
    for name in (CERTIFICATE, SIGNATURE):
        (folder / name).unlink(missing_ok=True)


def schema_json(model: Model) -> dict[str, Json]:
    """Return what was asked: columns, relation, rule and the names of decisions."""
    columns = [describe_attribute(attribute) for attribute in model.space.attributes]
    return {
        "columns": exact_json(columns),
        "outcomes": list(model.outcomes),
        "relation": model.relation.fingerprint or ALL_SENSITIVE_VALUES,
        "rule": exact_json(describe_rule(model.rule)),
    }


def votes_json(votes: StoredVotes) -> dict[str, Json]:
    """Return how the counterparts vote."""
    weights, ballot = votes.weights, votes.ballot
    return {
        "ballot": exact_json(
            None if ballot is None else [ballot.thresholds.tolist(), ballot.grades.tolist()]
        ),
        "level": exact_json(votes.level),
        "vote": votes.vote,
        "weights": exact_json(
            None if weights is None else [weights.assignment_ids.tolist(), weights.votes.tolist()]
        ),
    }


def _header(model: Model, votes: StoredVotes, facts: CertifiedFacts) -> dict[str, Json]:
    relation = model.relation.fingerprint or ALL_SENSITIVE_VALUES
    return {
        "data_sha256": facts.data_sha256,
        "date": facts.date,
        "feta": version("feta-fair"),
        "provenance": model.scorer.provenance,
        "relation": relation,
        "rule_sha256": _sha256(canonical(schema_json(model)["rule"])),
        "votes_sha256": _sha256(canonical(votes_json(votes))),
    }


def _stored_model(model: Model, votes: StoredVotes, table: TableOptions | None) -> bytes | None:
    """Return the model's file; None if no file can store the model."""
    if model.scorer.provenance == "counted" or model.relation.stored is None:
        return None
    return model_bytes(FairPredictor.voting(model, votes), table=table)


def _sha256(content: bytes | None) -> str | None:
    return None if content is None else hashlib.sha256(content).hexdigest()
