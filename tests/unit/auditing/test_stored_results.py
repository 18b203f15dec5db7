import json
from functools import reduce

import numpy as np
import pytest

import feta
from feta import Argmax, Model, Network, Tolerance
from feta.arrays import Matrix
from feta.auditing.auditor import Auditor
from feta.auditing.block import blocks_in_memory
from feta.auditing.results import AuditResults
from feta.auditing.stored_results import (
    read_bad_rows,
    read_results,
    stored_bad_rows,
    stored_results,
)
from feta.errors import SchemaError
from feta.io.bad_rows import BadKind, BadRows
from feta.rule import Outcome

SPACE = feta.FeatureSpace(
    (
        feta.Integer("age", 18, 40, sensitive=True),
        feta.Categorical("sex", ("female", "male"), sensitive=True),
        feta.Categorical("town", ("Ulm", "Bonn")),
        feta.Real("income", 0.0, 10.0),
    )
)
FIRST = [[0.25, 1.0, 0.0, 0.5, 0.0, 1.0], [0.0, 0.0, 1.0, 0.0, 0.5, -1.0]]
BINARY = Model(SPACE, Network.from_layers([(FIRST, [-8.0, 1.0]), ([[1.0, -1.0]], [-4.0])]))
SCORES = Model(
    SPACE, Network.from_layers([(FIRST, [-8.0, 1.0]), ([[0.3, 0.1]], [0.0])]), Tolerance(0.5)
)
CLASSES = Model(
    SPACE,
    Network.from_layers([([*FIRST, [0.1] * 6], [-8.0, 1.0, 2.0])]),
    Argmax(("no", "more", "yes")),
)


def people_of() -> Matrix:
    random = np.random.default_rng(3)
    records = [
        {
            "age": int(random.integers(18, 41)),
            "sex": str(random.choice(["female", "male"])),
            "town": str(random.choice(["Ulm", "Bonn"])),
            "income": float(random.choice([1.0, 3.5, 9.0, 12.0])),  # 12 is outside the limits
        }
        for _ in range(60)
    ]
    return SPACE.encode(records, limits="open")


def results_of(model: Model, people: Matrix, labels: list[Outcome | None]) -> list[AuditResults]:
    """Return the results of parts of 17 people, numbered as in the whole table."""
    auditor = Auditor(model)
    parts = []
    for block in blocks_in_memory(people, 17, labels, [f"p{row}" for row in range(len(people))]):
        results = AuditResults.of(model)
        results.add(block.audited(auditor.audit(block.people)))
        parts.append(results)
    return parts


def through_a_file(results: AuditResults, model: Model) -> AuditResults:
    return read_results(json.loads(json.dumps(stored_results(results))), model)


@pytest.mark.parametrize("model", [BINARY, SCORES, CLASSES])
def test_parts_that_were_stored_merge_to_the_results_of_the_table(model: Model) -> None:
    people = people_of()
    labels: list[Outcome | None] = [None if row % 7 == 0 else row % 2 for row in range(len(people))]
    whole = AuditResults.of(model)
    for block in blocks_in_memory(people, 60, labels, [f"p{row}" for row in range(60)]):
        whole.add(block.audited(Auditor(model).audit(block.people)))
    parts = [through_a_file(part, model) for part in results_of(model, people, labels)]
    merged = reduce(AuditResults.merged, parts)
    assert 0 < merged.summary.statuses["unfair"] <= 60
    assert stored_results(merged) == stored_results(whole)
    assert merged.summary.as_dict() == whole.summary.as_dict()
    assert list(merged.summary.as_dict()["outside_limits"]) == ["income"]  # type: ignore[call-overload]
    views = [results.top_pairs.pairs(Auditor(model)) for results in (merged, whole)]
    assert [view.before | {"row": view.finding.row} for view in views[0]] == [
        view.before | {"row": view.finding.row} for view in views[1]
    ]


def test_a_stored_counterexample_that_does_not_hold_is_refused() -> None:
    (first, *_) = results_of(BINARY, people_of(), [None] * 60)
    content = stored_results(first)
    (entry, *_) = content["top_pairs"][0][1]
    pair = entry["verdict"]["unfair"]
    entry["verdict"]["unfair"] = [pair[0], pair[0]]
    with pytest.raises(SchemaError, match=r"^stored results cannot be read: got .*; delete them"):
        read_results(content, BINARY)


@pytest.mark.parametrize("name", ["summary", "by_attribute", "top_pairs", "measured_people"])
def test_damaged_results_are_refused(name: str) -> None:
    content = stored_results(results_of(BINARY, people_of(), [None] * 60)[0])
    content[name] = "nothing"
    with pytest.raises(SchemaError, match=r"^stored results cannot be read"):
        read_results(content, BINARY)


def test_bad_rows_of_parts_merge() -> None:
    parts = []
    for kinds in (
        [BadKind("age", "empty cell", 2, 4), BadKind("sex", "not listed", 1, 5)],
        [BadKind("age", "empty cell", 3, 11)],
    ):
        part = BadRows(SPACE, rows=3)
        for kind in kinds:
            part.count(kind)
        parts.append(read_bad_rows(json.loads(json.dumps(stored_bad_rows(part))), BadRows(SPACE)))
    merged = parts[0].merged(parts[1])
    assert merged.rows == 6
    assert merged.kinds == (
        BadKind("age", "empty cell", 5, 4),
        BadKind("sex", "not listed", 1, 5),
    )
