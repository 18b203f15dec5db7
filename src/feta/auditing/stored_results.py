"""Results of an audit as JSON values, so that parts of a table can be audited and merged later.

All numbers are exact. The counterexamples to show are re-evaluated when they are read.
"""

import base64
import zlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import astuple, fields, replace
from fractions import Fraction
from typing import Any

import numpy as np

from feta.arrays import Vector
from feta.auditing.finding import Finding
from feta.auditing.groups import DecisionCase, Group
from feta.auditing.results import AuditResults, MeasuredPerson, NamedRow, SampledPerson, Unanswered
from feta.auditing.stored_verdict import read_verdict, stored_verdict
from feta.auditing.summary import COUNTERS, LARGEST, SUMS, AuditSummary
from feta.auditing.top_pairs import TopEntry
from feta.errors import SchemaError
from feta.io.bad_rows import BadKind, BadRows, bad_kinds_json
from feta.model import Model
from feta.query import WorstAt
from feta.space.limits import Outside
from feta.wider_limits import model_for

Json = dict[str, Any]

# Exceptions that damaged results may cause.
DAMAGE = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)


def stored_results(results: AuditResults) -> Json:
    """Return results as JSON values."""
    summary, groups = results.summary, results.groups
    moving = groups.model.relation.moving
    return {
        "summary": {name: _stored(getattr(summary, name)) for name in COUNTERS + SUMS + LARGEST},
        "by_attribute": {
            attribute: {name: _stored_group(group) for name, group in by_name.items()}
            for attribute, by_name in groups.by_attribute.items()
        },
        "by_intersection": [
            [list(names), _stored_group(group)] for names, group in groups.by_intersection.items()
        ],
        "top_pairs": [
            [attribute, [_stored_entry(entry, moving) for entry in entries]]
            for attribute, entries in results.top_pairs.best.items()
        ],
        "unanswered": [list(one) for one in results.unanswered],
        "runtime_sensitive_rows": [list(one) for one in results.runtime_sensitive_rows],
        "sample": [[one.row, _stored_vector(one.person)] for one in results.sample],
        "measured": [[one.order, one.label] for one in results.measured],
        "measured_people": _stored_vector(
            np.concatenate([one.person for one in results.measured] or [np.zeros(0)])
        ),
    }


def read_results(content: Json, model: Model) -> AuditResults:
    """Return the results about a model; raise `SchemaError` if they cannot be read."""
    try:
        return _read_results(content, model)
    except DAMAGE as error:
        raise SchemaError(
            f"stored results cannot be read: got {type(error).__name__}: {error}; expected results "
            "of this version of FETA; delete them, and run the command again"
        ) from None


def _read_results(content: Json, model: Model) -> AuditResults:
    results = AuditResults.of(model)
    results.summary = _read_summary(content["summary"], results.summary)
    groups = results.groups
    for attribute, by_name in content["by_attribute"].items():
        for name, group in by_name.items():
            groups.by_attribute[attribute][name] = _read_group(group)
    for names, group in content["by_intersection"]:
        groups.by_intersection[tuple(names)] = _read_group(group)
    for attribute, entries in content["top_pairs"]:
        results.top_pairs.best[attribute] = [_read_entry(entry, model) for entry in entries]
    results.unanswered = [Unanswered(*one) for one in content["unanswered"]]
    results.runtime_sensitive_rows = [NamedRow(*one) for one in content["runtime_sensitive_rows"]]
    results.sample = [SampledPerson(row, _read_vector(one)) for row, one in content["sample"]]
    people = _read_vector(content["measured_people"]).reshape(-1, model.space.width)
    results.measured = [
        MeasuredPerson(order, person, label)
        for (order, label), person in zip(content["measured"], people, strict=True)
    ]
    return results


def stored_bad_rows(bad_rows: BadRows) -> Json:
    """Return the bad rows as JSON values."""
    kinds = tuple(kind for kinds in bad_rows.reasons.values() for kind in kinds.values())
    return {"rows": bad_rows.rows, "kinds": bad_kinds_json(kinds)}


def read_bad_rows(content: Json, empty: BadRows) -> BadRows:
    """Return stored bad rows, with the settings of `empty`."""
    for kind in content["kinds"]:
        empty.count(BadKind(**kind))
    empty.rows = content["rows"]
    return empty


def _stored(value: object) -> object:
    """Return a count, an exact sum, or a counter with its keys in order."""
    if isinstance(value, Counter):
        return [
            [astuple(key) if isinstance(key, Outside) else key, count]
            for key, count in value.items()
        ]
    return str(value) if isinstance(value, Fraction) else value


def _read(value: Any) -> Any:  # noqa: ANN401 - a number, or a counter
    if isinstance(value, list):
        return Counter(dict(value))
    return Fraction(value) if isinstance(value, str) else value


def _read_summary(content: Mapping[str, Any], empty: AuditSummary) -> AuditSummary:
    values = {name: _read(content[name]) for name in COUNTERS + SUMS + LARGEST if name != "outside"}
    outside = Counter({Outside(*limit): count for limit, count in _pairs(content["outside"])})
    return replace(empty, **values, outside=outside)


def _pairs(content: list[list[Any]]) -> list[tuple[list[Any], int]]:
    return [(key, count) for key, count in content]


def _stored_group(group: Group) -> Json:
    return {one.name: _stored(getattr(group, one.name)) for one in fields(group)}


def _read_group(content: Mapping[str, Any]) -> Group:
    values = {name: _read(value) for name, value in content.items() if name != "cases"}
    cases = Counter({DecisionCase(*case): count for case, count in _pairs(content["cases"])})
    return Group(**values, cases=cases)


def _stored_entry(entry: TopEntry, moving: Any) -> Json:  # noqa: ANN401 - flags
    finding = entry.finding
    assert finding.verdict is not None  # it has a pair
    return {
        "person": _stored_vector(entry.person),
        "name": entry.name,
        "row": finding.row,
        "verdict": stored_verdict(finding.verdict, moving),
        "decision": finding.decision,
        "fair_decision": finding.fair_decision,
        "alone": list(finding.alone),
        "replayed": finding.replayed,
        "span": finding.span,
    }


def _read_entry(content: Json, model: Model) -> TopEntry:
    """Read an entry; its pair is re-evaluated over the limits that hold for the person."""
    person = _read_vector(content["person"])
    verdict = read_verdict(content["verdict"], WorstAt(model_for(model, person), person))
    finding = Finding(
        content["row"],
        verdict,
        content["decision"],
        content["fair_decision"],
        tuple(content["alone"]),
        content["replayed"],
        span=content["span"],
    )
    if finding.pair is None:
        raise ValueError("a counterexample does not hold")
    return TopEntry(finding, (-finding.pair.gap, finding.row), person, content["name"])


def _stored_vector(vector: Vector) -> str:
    return base64.b64encode(zlib.compress(np.asarray(vector, "<f8").tobytes(), 1)).decode("ascii")


def _read_vector(text: str) -> Vector:
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), "<f8").astype(np.float64)
