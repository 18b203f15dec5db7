"""What the documents of a bundle may state: facts of one audit, and gaps for the provider."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from feta.io.canonical_json import canonical
from feta.io.sanitize import joined
from feta.report.impact_ratios import FAIR, MODEL, ImpactRow
from feta.report.markdown import md, sentence

# A passage that no audit can know.
GAP = "**To be filled in by the provider:**"

DECISIONS = {MODEL: "decisions of the model", FAIR: "fair decisions"}


@dataclass(frozen=True, slots=True)
class Evidence:
    """A stored audit, its certificate, and the impact ratios of its people."""

    audit: dict[str, Any]  # the content of audit.json
    header: dict[str, Any]  # of the certificate
    end: dict[str, Any]
    impact: tuple[ImpactRow, ...]  # empty if nobody named the decision that selects
    signed: bool
    with_model: bool

    @property
    def seal(self) -> str:
        """The digest of the end line."""
        return hashlib.sha256(canonical(self.end)).hexdigest()

    @property
    def model(self) -> dict[str, Any]:
        """The model and the question."""
        model: dict[str, Any] = self.audit["model"]
        return model

    @property
    def summary(self) -> dict[str, Any]:
        """The counts and rates."""
        summary: dict[str, Any] = self.audit["summary"]
        return summary

    @property
    def name(self) -> str:
        """The name of the model's file."""
        return str(self.model.get("file") or "model")

    @property
    def lowest_ratio(self) -> ImpactRow | None:
        """The lowest impact ratio of one column, of the model's decisions."""
        rows = [
            row
            for row in self.impact
            if row.decisions == MODEL and len(row.columns) == 1
            and row.ratio_from_2_percent is not None
        ]  # fmt: skip
        return min(rows, key=lambda row: row.ratio_from_2_percent or Fraction(0), default=None)

    def identity(self) -> Iterator[str]:
        """Yield which model, table and version the facts are about."""
        model, header = self.model, self.header
        yield f"Model: {md(self.name)}, SHA-256 `{md(model.get('file_sha256') or 'unknown')}`"
        if header["model_sha256"]:
            yield f"The same model as model.feta: SHA-256 `{header['model_sha256']}`"
        yield f"Table: {md(self.audit['data'])}, SHA-256 `{md(header['data_sha256'])}`"
        yield f"Date of the audit: {md(header['date'])}; FETA {md(header['feta'])}"
        yield f"Seal of the certificate: `{self.seal}`"

    def results(self) -> Iterator[str]:
        """Yield the results in sentences."""
        summary, provenance = self.summary, self.header["provenance"]
        yield (
            f"{summary['people']:,} people were audited: {summary['fair']:,} fair, "
            f"{summary['unfair']:,} unfair, {summary['undecided']:,} undecided; "
            f"{summary['not_audited']:,} rows were not audited."
        )
        if not self.end["complete"]:
            yield "The audit is partial: it was interrupted, and rows of the table are missing."
        how = {
            "proved": "Each verdict of fair or unfair is proved; the certificate has the evidence.",
            "sampled": "The preprocessing was sampled, so no verdict is proved.",
            "counted": "The verdicts are recorded answers of the model; nothing is proved.",
        }
        yield how[provenance]
        tolerance = self.model["tolerance"]
        moves = "changes the decision"
        if tolerance is not None:
            moves = f"moves the score by more than {_number(tolerance)} in all"
        yield (
            f"Fair means that no other combination of the sensitive values {moves}. "
            f"The sensitive columns are {sentence(joined(self.model['sensitive']))}."
        )
        yield f"{_percent(summary['ce_rate'])} of the people have a counterexample (CE rate)."
        if summary["flip_rate"] is not None:
            yield f"{_percent(summary['flip_rate'])} of the decisions differ from the fair ones."

    def accuracies(self) -> Iterator[str]:
        """Yield the accuracies, or the gap."""
        summary = self.summary
        kinds = {
            "accuracy": ("Accuracy of the model", _percent),
            "fair_accuracy": ("Accuracy of the fair decisions", _percent),
            "mean_absolute_error": ("Mean absolute error of the model", _number),
            "fair_mean_absolute_error": ("Mean absolute error of the fair scores", _number),
        }
        known = {name: summary.get(name) for name in kinds}
        if all(value is None for value in known.values()):
            yield f"{GAP} the accuracy; the audit had no labels (`--label`)."
        for name, value in known.items():
            if value is not None:
                words, shown = kinds[name]
                yield f"{words}, on the audited people: {shown(value)}."

    def impact_table(self) -> Iterator[str]:
        """Yield a table of the impact ratios of single columns."""
        yield table_row(["decisions", "column", "category", "people", "rate", "impact ratio"])
        yield table_row(["---"] * 6)
        for row in self.impact:
            if len(row.columns) > 1 or row.rate is None:
                continue
            ratio = row.ratio
            shown = "" if ratio is None else f"{float(ratio):.3f}"
            note = f" ({row.note})" if row.note else ""
            cells = [DECISIONS[row.decisions], row.columns[0], f"{row.category}{note}"]
            counts = [f"{row.people:,}", f"{float(row.rate):.3f}", shown]
            yield table_row([md(cell) for cell in cells] + counts)


def table_row(cells: Sequence[str]) -> str:
    """Return a row of a table in Markdown."""
    return "| " + " | ".join(cells) + " |"


def bullets(lines: Iterator[str]) -> Iterator[str]:
    """Return lines as a list in Markdown."""
    yield from (f"- {line}" for line in lines)


def _percent(share: float) -> str:
    return f"{share:.1%}"


def _number(number: float) -> str:
    return f"{number:.4g}"
