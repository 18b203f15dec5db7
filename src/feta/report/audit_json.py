"""Audit JSON: a report for programs, as audit.json holds it; docs/formats.md describes it."""

from dataclasses import fields
from typing import Any

from feta.auditing.top_pairs import PairView
from feta.io.bad_rows import bad_kinds_json
from feta.model import Model
from feta.readers.comparison import Comparison
from feta.report.groups import Group
from feta.report.report import Report
from feta.report.words import never_read
from feta.rule import DEFINITION, Tolerance
from feta.space.attribute import Attribute

FORMAT = "feta-audit"
VERSION = 1


def audit_json(report: Report) -> dict[str, Any]:
    """Give a report as plain values; what was measured with a clock is under `seconds` and `latency`."""
    model, source = report.model, report.source
    latency = report.latency
    return {
        "format": FORMAT,
        "version": VERSION,
        "feta": report.versions["FETA"],
        "partial": report.partial,
        "model": {
            "file": source.model_file,
            "file_sha256": source.model_sha256,
            "fingerprint": model.fingerprint,
            "network": model.network.fingerprint,
            "space": model.space.fingerprint,
            "counterparts": model.space.lattice.size if model.space.finite else None,
            "rule": type(model.rule).__name__,
            "outcomes": list(model.outcomes),
            "rule_options": {one.name: getattr(model.rule, one.name) for one in fields(model.rule)},
            "tolerance": model.rule.epsilon if isinstance(model.rule, Tolerance) else None,
            "tolerance_compares": DEFINITION if isinstance(model.rule, Tolerance) else None,
            "sensitive": {one.name: _stored_domain(one) for one in model.space.sensitive},
            "reading": model.network.provenance,
            "notes": list(source.notes),
            "table": dict(source.table),
            "sensitive_never_read": list(never_read(model)),
        },
        "data": source.data,
        "data_sha256": source.data_sha256,
        "compared": None if source.compared is None else _compared(source.compared),
        "id_column": source.id_column,
        "vote_weights": source.vote_weights,
        "engine": report.engine,
        "engine_used": report.engine_used,
        "seconds_per_person": report.seconds_a_person,
        "seconds": report.seconds,
        "latency": None if latency is None else {"forward": latency.forward, "fair": latency.fair},
        "summary": report.summary.as_dict(),
        "groups": {
            name: {group: _group(model, one) for group, one in report.groups.present(name)}
            for name in report.groups.by_attribute
        },
        "clearest_pairs": [_pair(model, shown) for shown in report.pairs],
        "unanswered": list(report.unanswered),
        "bad_rows": bad_kinds_json(report.bad_rows),
        "files": dict(report.files),
    }


def _compared(compared: Comparison) -> dict[str, Any]:
    return {
        "function": compared.runtime,
        "rows": compared.rows,
        "different": compared.different,
        "largest_difference": compared.gap,
    }


def _group(model: Model, group: Group) -> dict[str, Any]:
    told: dict[str, Any] = {"people": group.people, "unfair": group.unfair, "flips": group.flips}
    told["undecided"] = group.undecided
    if isinstance(model.rule, Tolerance):
        return told
    for key, counts in (("decisions", group.own), ("fair_decisions", group.fair)):
        told[key] = {name: counts[index] for index, name in enumerate(model.outcomes)}
    return told


def _pair(model: Model, shown: PairView) -> dict[str, Any]:
    finding, pair = shown.finding, shown.pair
    before, after = model.space.decode(pair.person), model.space.decode(pair.counterpart)
    return {
        "row": finding.row + 1,
        "id": shown.name,
        "person": before,
        "changed": {one: after[one] for one in after if after[one] != before[one]},
        "decisions": [model.outcomes[decision] for decision in pair.decisions],
        "scores": pair.scores.tolist(),
        "gap": pair.gap,
        "runtime": finding.runtime,
        "replayed": finding.replayed,
    }


def _stored_domain(attribute: Attribute) -> str:
    """Return a domain in the words of version 0.1.0, since `feta diff` compares these texts."""
    return attribute.domain().replace("an integer from", "a whole number from")
