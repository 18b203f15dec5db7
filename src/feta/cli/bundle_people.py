"""The people of a bundle: decisions from the certificate, and categories of each person."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from feta.errors import DomainError, SchemaError, missing, unknown_choice
from feta.io.canonical_json import exact_number
from feta.io.certificate_reader import StoredCertificate
from feta.io.table_file import TableFile
from feta.progress import Advance
from feta.report.audited import Audited
from feta.report.impact_ratios import FAIR, MODEL, ImpactRow, impact_rows, is_selected
from feta.report.person_groups import PersonGroups, groups_of, texts

Json = dict[str, Any]
Outcomes = list[Fraction | int | None]

# A column with more different texts does not divide people into groups.
MAX_CATEGORIES = 50


@dataclass(frozen=True, slots=True)
class BundlePeople:
    """Cells and decisions of all rows of a certificate."""

    certificate: StoredCertificate
    schema: Json
    rows: list[int]  # counted from 1
    people: list[list[Any]]  # cells of the claims; empty for a row that was not read
    decisions: Outcomes
    fair_decisions: Outcomes

    @classmethod
    def read(
        cls, certificate: StoredCertificate, audited: Audited, advance: Advance
    ) -> "BundlePeople":
        """Read the claims; raise unless verdicts.csv has the same verdicts."""
        people = cls(certificate, certificate.schema, [], [], [], [])
        verdicts = [person.verdict for person in audited.people]
        for count, claim in enumerate(certificate.claims()):
            row = claim["row"]
            if row > len(verdicts) or verdicts[row - 1] != claim["verdict"]:
                raise SchemaError(
                    f"{certificate.folder}: verdicts.csv does not belong to the certificate: got "
                    f"another verdict of row {row}; audit again with --certify"
                )
            people.rows.append(row)
            people.people.append(claim.get("person", []))
            people.decisions.append(_outcome(claim.get("decision")))
            people.fair_decisions.append(_outcome(claim.get("fair_decision")))
            if count % 1000 == 0:
                advance(count / certificate.end["claims"])
        return people

    def impact(
        self,
        columns: Sequence[str],
        selected: str | None,
        unknown: Sequence[str],
        data: Path | None,
    ) -> list[ImpactRow]:
        """Return the impact ratios; none if several decisions are possible and none is named."""
        chosen = self._chosen(selected)
        if chosen is None and self.schema["rule"]["kind"] != "Tolerance":
            return []
        names = columns or [one["name"] for one in self.schema["columns"] if one.get("sensitive")]
        if len(set(names)) != len(names):
            raise SchemaError(f"--groups names a column twice: got {', '.join(names)}")
        groups = [self._groups(name, unknown, data) for name in names]
        model = is_selected(self.decisions, chosen)
        fair = is_selected(self.fair_decisions, chosen)
        return [*impact_rows(groups, model, MODEL), *impact_rows(groups, fair, FAIR)]

    def _chosen(self, selected: str | None) -> int | None:
        """Return the decision that selects a person; None for scores, or if it is not known."""
        outcomes, kind = self.schema["outcomes"], self.schema["rule"]["kind"]
        if selected is None:
            return None if kind in ("Argmax", "Tolerance") else 1
        if kind == "Tolerance":
            raise SchemaError(
                "a regression makes no decisions: got --selected; omit it: ll144.csv then has the "
                "share of scores above the median"
            )
        if selected not in outcomes:
            choice = unknown_choice(selected, outcomes)
            raise SchemaError(f"unknown decision of --selected: {choice}")
        return int(outcomes.index(selected))

    def _groups(self, name: str, unknown: Sequence[str], data: Path | None) -> PersonGroups:
        raw = [column for column in self.schema["columns"] if column["kind"] != "derived"]
        for index, column in enumerate(raw):
            if column["name"] == name:
                cells = [cells[index] if cells else None for cells in self.people]
                return groups_of(self.schema, column, cells, unknown)
        if data is None:
            known = [column["name"] for column in raw]
            raise SchemaError(
                f"{missing(name, known, owner='schema')}; or name the table by --data"
            )
        return texts(name, self._texts(name, data), unknown)

    def _texts(self, name: str, data: Path) -> list[str | None]:
        """Return a column of the table, which must be the one of the certificate."""
        with data.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if digest != self.certificate.header["data_sha256"]:
            raise SchemaError(
                f"{data}: --data is not the audited table: got the SHA-256 {digest}; expected "
                f"{self.certificate.header['data_sha256']}"
            )
        table = TableFile(data)
        table.require([name])
        cells: list[str | None] = []
        for chunk in table.chunks([name]):
            cells += [None if cell is None else str(cell) for cell in chunk.columns[name]]
        found = {cells[row - 1] for row in self.rows}
        if len(found) > MAX_CATEGORIES:
            raise DomainError(
                f"{data}: column {name!r} has {len(found)} different texts; expected at most "
                f"{MAX_CATEGORIES} categories",
                column=name,
            )
        return [cells[row - 1] for row in self.rows]


def _outcome(stated: Any) -> Fraction | int | None:  # noqa: ANN401 - JSON
    return exact_number(stated) if isinstance(stated, str) else stated
