"""Results of the parts of a table, merged, equal those of the table."""

import pickle
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from feta import Argmax, FeatureSpace, Integer, Model, Network, Real, Tolerance
from feta.auditing.auditor import Auditor
from feta.auditing.block import AuditedBlock, Block, UnreadRow
from feta.auditing.executor import InProcess
from feta.auditing.finding import Finding
from feta.auditing.results import AuditResults
from feta.auditing.stream import AuditStream
from feta.errors import DomainError

SPACE = FeatureSpace(
    (
        Integer("age", 0, 4, sensitive=True),
        Integer("size", 0, 4, sensitive=True, missing=True),
        Real("income", -20, 20),
        Real("rent", 0, 1),
    )
)
SLOPES = [0.7, 0.3, 0.1, 1.0, 0.01]
MODELS = {
    "threshold": Model(SPACE, Network.from_layers([([SLOPES], [0.1])]), threshold=0.0),
    "classes": Model(
        SPACE,
        Network.from_layers([([SLOPES, [0, 0.5, 0, 1, 0], [0.0] * 5], [0.0, 0.5, 0.25])]),
        Argmax(("a", "b", "c")),
    ),
    "regression": Model(SPACE, Network.from_layers([([SLOPES], [0.1])]), Tolerance(3.9)),
}


@cache
def pool(name: str) -> list[tuple[np.ndarray[Any, Any], Finding]]:
    """Return people, some of them outside the limits, and the findings about them."""
    rng = np.random.default_rng(0)
    rows = [
        {
            "age": int(rng.integers(0, 5)),
            "size": None if rng.random() < 0.2 else int(rng.integers(0, 5)),
            "income": float(rng.normal() * 4) if rng.random() < 0.9 else -25.0,
            "rent": float(rng.random() * 1.3),
        }
        for _ in range(40)
    ]
    people = SPACE.encode(rows, limits="open")
    return list(zip(people, Auditor(MODELS[name]).audit(people), strict=True))


def block_of(name: str, rows: list[tuple[int, bool]], start: int) -> AuditedBlock:
    """Return a block of rows of the pool; a row may be unreadable."""
    known = pool(name)
    read = [index for index, readable in rows if readable]
    people = np.array([known[index][0] for index in read]).reshape(len(read), SPACE.width)
    unread = {
        number: UnreadRow(DomainError("bad cell"))
        for number, (_, readable) in enumerate(rows)
        if not readable
    }
    labels = tuple(_label(name, index) for index, _ in rows)
    names = tuple(f"p{start + number}" for number in range(len(rows)))
    block = Block(start, people, labels, names, unread)
    return block.audited([known[index][1] for index in read])


def _label(name: str, index: int) -> float | None:
    if index % 4 == 0:
        return None
    return index / 7 if name == "regression" else index % len(MODELS[name].outcomes)


def content(results: AuditResults) -> dict[str, object]:
    """Return everything that a report can show, in a form that compares by value."""
    summary, groups = results.summary, results.groups
    return {
        "summary": summary.as_dict(),
        "sums": [summary.violation_sum, summary.error_sum, summary.span_sum],
        "order": [list(summary.outside), list(summary.decisions), list(summary.unlisted)],
        "groups": groups.by_attribute,
        "intersections": list(groups.by_intersection.items()),
        "top": {
            attribute: [(entry.rank, entry.name) for entry in entries]
            for attribute, entries in results.top_pairs.best.items()
        },
        "unanswered": results.unanswered,
        "sensitive": results.runtime_sensitive_rows,
        "sample": [(row, person.tolist()) for row, person in results.sample],
        "measured": [(order, person.tolist(), label) for order, person, label in results.measured],
    }


ROWS = st.lists(st.tuples(st.integers(0, 39), st.booleans() | st.just(True)), max_size=60)


@pytest.mark.parametrize("name", MODELS)
@given(rows=ROWS, cuts=st.lists(st.integers(0, 60), max_size=3), split=st.integers(0, 60))
@settings(max_examples=60, deadline=None)
def test_merged_halves_equal_one_pass(
    name: str, rows: list[tuple[int, bool]], cuts: list[int], split: int
) -> None:
    model = MODELS[name]
    whole = AuditResults.of(model)
    whole.add(block_of(name, rows, 0))
    ends = sorted({0, len(rows), *(min(cut, len(rows)) for cut in cuts), min(split, len(rows))})
    halves = [AuditResults.of(model), AuditResults.of(model)]
    for start, end in pairwise(ends):
        halves[start >= split].add(block_of(name, rows[start:end], start))
    first, second = (pickle.loads(pickle.dumps(half)) for half in halves)
    assert content(first.merged(second)) == content(whole)


def test_rows_are_listed_in_order_whatever_the_order_of_the_parts() -> None:
    rows = [(index, True) for index in range(40)]
    whole = AuditResults.of(MODELS["threshold"])
    whole.add(block_of("threshold", rows, 0))
    last, first = (AuditResults.of(MODELS["threshold"]) for _ in range(2))
    last.add(block_of("threshold", rows[25:], 25))
    first.add(block_of("threshold", rows[:25], 0))
    merged, expected = content(last.merged(first)), content(whole)
    for name in ("summary", "sums", "groups", "top", "unanswered", "sensitive", "sample"):
        assert merged[name] == expected[name], name


def test_measured_people_are_spread_whatever_the_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("feta.auditing.results.MEASURED_PEOPLE", 8)
    rows = [(index, True) for index in range(40)]
    whole = AuditResults.of(MODELS["threshold"])
    whole.add(block_of("threshold", rows, 0))
    last, first = (AuditResults.of(MODELS["threshold"]) for _ in range(2))
    last.add(block_of("threshold", rows[25:], 25))
    for start in (20, 0, 10):
        end = min(start + 10, 25)
        first.add(block_of("threshold", rows[start:end], start))
    assert content(last.merged(first))["measured"] == content(whole)["measured"]
    multiplier = 0x9E3779B97F4A7C15
    lowest = sorted(range(40), key=lambda row: (row + 1) * multiplier % 2**64)[:8]
    people = block_of("threshold", rows, 0).block.people
    expected = [people[row].tolist() for row in lowest]
    assert [measured.person.tolist() for measured in whole.measured] == expected
    assert min(lowest) < 10
    assert max(lowest) >= 30


def test_limits_and_texts_are_listed_in_the_order_of_the_rows() -> None:
    rows = [
        {"age": 0, "size": 0, "income": 0.0, "rent": 1.5},
        {"age": 0, "size": 0, "income": 30.0, "rent": 0.5},
    ]
    people = SPACE.encode(rows, limits="open")
    results = AuditResults.of(MODELS["threshold"])
    stream = AuditStream(InProcess(Auditor(MODELS["threshold"])))
    for audited in stream.blocks([Block(0, people, (None, None), ("", ""))]):
        results.add(audited)
    assert [limit.column for limit in results.summary.outside] == ["rent", "income"]


def test_results_do_not_keep_the_blocks_of_their_people_in_memory() -> None:
    results = AuditResults.of(MODELS["threshold"])
    for start in range(0, 40, 10):
        results.add(block_of("threshold", [(row, True) for row in range(start, start + 10)], start))
    assert len(results.measured) == 40
    assert results.sample
    people = [one.person for one in results.measured] + [one.person for one in results.sample]
    assert all(person.base is None for person in people)
