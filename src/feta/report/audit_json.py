"""A report for programs: the content of audit.json (docs/reference/formats.md)."""

from typing import Any

from feta.auditing.groups import Group
from feta.auditing.report_data import ReportData, ReportSource
from feta.auditing.top_pairs import PairView
from feta.io.bad_rows import bad_kinds_json
from feta.model import Model
from feta.report.words import never_read
from feta.rule import DEFINITION
from feta.rule.protocol import rule_options
from feta.scorer.protocol import has_scores
from feta.space.attribute import Attribute, Integer

FORMAT = "feta-audit"
VERSION = 1


def audit_json(report: ReportData) -> dict[str, Any]:
    """Return a report as JSON values; only `seconds` and `latency` are measured times."""
    model, source = report.model, report.source
    latency = report.latency
    return {
        "format": FORMAT,
        "version": VERSION,
        "feta": report.versions["FETA"],
        "partial": report.partial,
        "stopped": report.stopped,
        "provenance": report.summary.provenance,
        "model": _model_json(report),
        "data": source.data,
        "data_sha256": source.data_sha256,
        "compared": _comparison_json(source),
        "id_column": source.id_column,
        "vote_weights": source.vote_weights,
        "engine": report.engine,
        "engine_used": report.engine_used,
        "seconds_per_person": report.seconds_per_person,
        "seconds": report.seconds,
        "latency": None if latency is None else {"forward": latency.forward, "fair": latency.fair},
        "summary": report.summary.as_dict(),
        "groups": {
            attribute: {
                name: _group_json(model, group) for name, group in report.groups.present(attribute)
            }
            for attribute in report.groups.by_attribute
        },
        "clearest_pairs": [_pair_json(model, view) for view in report.pairs],
        "unanswered": [row._asdict() for row in report.unanswered],
        "proxies": None if report.proxies is None else report.proxies.as_json(),
        "bad_rows": bad_kinds_json(report.bad_rows),
        "files": dict(report.files),
    }


def _model_json(report: ReportData) -> dict[str, Any]:
    model, source = report.model, report.source
    space, rule = model.space, model.rule
    relation = list(model.relation.sentences)
    return ({"relation": relation} if model.relation.fingerprint else {}) | {
        "file": source.model_file,
        "file_sha256": source.model_sha256,
        "fingerprint": model.fingerprint,
        "network": model.scorer.fingerprint,
        "space": space.fingerprint,
        "counterparts": space.lattice.size if space.finite else None,
        "rule": type(rule).__name__,
        "outcomes": list(model.outcomes),
        "rule_options": rule_options(rule),
        "tolerance": rule.tolerance,
        "tolerance_compares": None if rule.tolerance is None else DEFINITION,
        "sensitive": {attribute.name: _stored_domain(attribute) for attribute in space.sensitive},
        "reading": model.scorer.provenance,
        "notes": list(source.notes),
        "table": dict(source.table),
        "sensitive_never_read": list(never_read(model)),
    }


def _comparison_json(source: ReportSource) -> dict[str, Any] | None:
    compared = source.compared
    if compared is None:
        return None
    return {
        "function": compared.runtime,
        "rows": compared.rows,
        "different": compared.different,
        "largest_difference": compared.gap,
    }


def _group_json(model: Model, group: Group) -> dict[str, Any]:
    content: dict[str, Any] = {
        "people": group.people,
        "unfair": group.unfair,
        "flips": group.flips,
        "undecided": group.undecided,
    }
    if model.rule.tolerance is not None:
        return content
    names = enumerate(model.outcomes)
    counts = [(name, group.decisions[index], group.fair_decisions[index]) for index, name in names]
    return content | {
        "decisions": {name: count for name, count, _ in counts},
        "fair_decisions": {name: count for name, _, count in counts},
    }


def _pair_json(model: Model, view: PairView) -> dict[str, Any]:
    finding, pair = view.finding, view.pair
    return {
        "row": finding.row + 1,
        "id": view.name,
        "person": view.before,
        "changed": {name: view.after[name] for name in view.changed},
        "decisions": [model.outcomes[decision] for decision in pair.decisions],
        "scores": pair.scores.tolist(),
        "gap": pair.gap if has_scores(model.scorer) else None,
        "runtime": finding.runtime,
        "replayed": finding.replayed,
    }


def _stored_domain(attribute: Attribute) -> str:
    """Return a domain in the words of version 0.1.0, since `feta diff` compares these texts."""
    domain = attribute.domain()
    if isinstance(attribute, Integer):
        return domain.replace("an integer from", "a whole number from")
    return domain
