"""Every kind of model that a file can store: the service, compared with the definition."""

import asyncio
from collections import Counter
from collections.abc import Coroutine
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from feta import Constrained, FairPredictor, Model, Similar, save_model
from feta.errors import FetaError
from feta.rule import Argmax, OneVsRest, Rule, Threshold, Tolerance
from feta.serve.decisions import decide_records
from feta.serve.served import Served
from feta.serve.whatif import DIGITS
from feta.space.vote_weights import VoteWeights
from tests import forest_cases, oracle, strategies
from tests.serve.service import built, predictor, records

FORESTS = range(12)
NETWORKS = range(100, 124)
Expected = list[int | Fraction]
Asked = tuple[Model, VoteWeights | None, list[dict[str, Any]], Expected]


def of_network(seed: int) -> Asked:
    rng = np.random.default_rng(seed)
    case = strategies.random_case(rng, strategies.EDGES[seed % 6], plain=False)
    records = [case.model.space.decode(person) for person in case.people]
    expected = [oracle.fair_decision(case.model, one, case.weights) for one in case.people]
    return case.model, case.weights, records, expected


def of_forest(seed: int) -> Asked:
    rng = np.random.default_rng(seed)
    case = forest_cases.random_case(rng, strategies.EDGES[seed % 6])
    expected = [case.answers(record).fair_decision(case.weights) for record in case.records]
    return case.model, case.weights, [dict(one) for one in case.records], expected


def asked(seed: int) -> Asked:
    return of_forest(seed) if seed in FORESTS else of_network(seed)


def answer(path: Path, questions: list[tuple[str, str, Any]]) -> list[httpx.Response]:
    """Answer requests by the application itself, without a socket."""
    app: Any = built(path)

    async def ask() -> list[httpx.Response]:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
            return [await client.request(*one[:2], json=one[2]) for one in questions]

    asking: Coroutine[Any, Any, list[httpx.Response]] = ask()
    return asyncio.run(asking)


def name_of(rule: Rule, model: Model, decision: int | Fraction) -> object:
    if isinstance(rule, Tolerance):
        return pytest.approx(float(decision), rel=1e-12)
    return model.outcomes[int(decision)]


@pytest.mark.parametrize("seed", [*FORESTS, *NETWORKS])
def test_the_service_decides_as_the_definition(tmp_path: Path, seed: int) -> None:
    model, weights, records, expected = asked(seed)
    try:
        save_model(FairPredictor(model, weights=weights), tmp_path / "m.feta")
    except FetaError as error:
        pytest.skip(str(error))
    names = [name_of(model.rule, model, decision) for decision in expected]
    shared = [
        {name: value for name, value in record.items() if name not in sensitive_of(model)}
        for record in records
    ]
    singles = [("POST", "/v1/decide", record) for record in [*records, *shared]]
    lists = [("POST", "/v1/decide", table) for table in (records, shared)]
    answers = answer(tmp_path / "m.feta", [*singles, *lists])
    assert [one.status_code for one in answers] == [200] * len(answers)
    assert [one.json()["decision"] for one in answers[: len(singles)]] == names * 2
    for one in answers[len(singles) :]:
        assert one.json()["decisions"] == names
        assert one.json()["refused"] == []


def sensitive_of(model: Model) -> set[str]:
    return {attribute.name for attribute in model.space.sensitive}


@pytest.mark.parametrize("seed", [*FORESTS, *NETWORKS])
def test_what_if_lists_the_decisions_of_the_definition(tmp_path: Path, seed: int) -> None:
    model, weights, records, _ = asked(seed)
    try:
        save_model(FairPredictor(model, weights=weights), tmp_path / "m.feta")
    except FetaError as error:
        pytest.skip(str(error))
    (got,) = answer(tmp_path / "m.feta", [("POST", "/v1/whatif", records[0])])
    if isinstance(model.rule, Tolerance):
        assert got.status_code == 422
        assert "no what-if for this model: got a regression" in got.json()["error"]
        return
    assert got.status_code == 200, got.text
    person = model.space.encode(records[0])[0]
    if seed in FORESTS:
        right = (
            forest_cases.random_case(np.random.default_rng(seed), strategies.EDGES[seed % 6])
            .answers(records[0])
            .decisions
        )
    else:
        right = [oracle.decide(model, one) for one in oracle.counterparts(model, person)]
    content = got.json()
    assert content["decisions"] == "".join(DIGITS[one] for one in right)
    assert content["fair"] == (len(set(right)) == 1)
    assert (content["pair"] is None) == content["fair"]


def test_a_model_of_plausible_people_is_served_and_others_are_refused(tmp_path: Path) -> None:
    plain = predictor(0).model
    people = records(30, seed=5)
    constrained = Constrained.of(plain.space, "2 * age - income >= 0")
    model = replace(plain, relation=constrained, threshold=None)
    save_model(FairPredictor(model), tmp_path / "m.feta")
    questions = [("POST", "/v1/decide", record) for record in people]
    got = answer(tmp_path / "m.feta", [*questions, ("GET", "/v1/card", None)])
    statuses = Counter[int]()
    for record, one in zip(people, got, strict=False):
        row = plain.space.encode([{**record, "age": 18, "sex": "male"}])[0]
        others = [
            other for other in oracle.counterparts(plain, row) if 2 * other[0] >= record["income"]
        ]
        statuses[one.status_code] += 1
        if not others:
            assert one.status_code == 422
            assert "the relation admits nobody with these other columns" in one.text
            continue
        favorable = sum(oracle.decide(model, other) for other in others)
        assert one.json()["decision"] == model.outcomes[int(2 * favorable >= len(others))]
    assert set(statuses) == {200, 422}
    assert "2 * age - income >= 0" in got[-1].json()["relation"][0]
    sensitive = {"age": 20, "sex": "male"}
    (refused,) = answer(tmp_path / "m.feta", [("POST", "/v1/whatif", {**people[0], **sensitive})])
    assert refused.status_code == 422
    similar = replace(plain, relation=Similar({"income": 5}), threshold=None)
    save_model(similar, tmp_path / "m.feta")
    with pytest.raises(FetaError, match="no fair decision exists"):
        answer(tmp_path / "m.feta", questions)


CELLS: tuple[Any, ...] = (
    True,
    False,
    0,
    1,
    1.0,
    -0.0,
    2.5,
    "1",
    "a",
    " a",
    "",
    "nan",
    None,
    1e15,
    2**60,
    [1],
    {},
)


@pytest.mark.parametrize("seed", [*FORESTS[:6], *NETWORKS[:12]])
def test_a_record_gets_the_same_answer_alone_and_in_a_list(tmp_path: Path, seed: int) -> None:
    """Usual records take a shorter way; unusual ones must not be decided differently on it."""
    model, weights, records, _ = asked(seed)
    save_model(FairPredictor(model, weights=weights), tmp_path / "m.feta")
    served = Served.load(tmp_path / "m.feta", "m")
    good = records[0]
    for name in served.required:
        rows: list[Any] = [good | {name: cell} for cell in CELLS]
        rows.append({column: cell for column, cell in good.items() if column != name})
        together = decide_records(served, rows)
        decided = dict(zip(together.rows, together.names, strict=True))
        refused = {one.row: one.why for one in together.refused}
        assert sorted([*decided, *refused]) == list(range(len(rows)))
        assert len(rows) - 1 in refused
        for row, record in enumerate(rows):
            alone = decide_records(served, [record])
            assert (alone.names[0] if alone.rows else None) == decided.get(row)
            assert [one.why for one in alone.refused] == [
                why for place, why in refused.items() if place == row
            ]
            try:  # what a program gets that asks the predictor
                person = model.space.encode(record, sensitive="ignore", limits="open")
                outcome = served.predictor.decide(person).tolist()[0]
            except FetaError:
                assert row in refused
            else:
                assert decided.get(row, refused.get(row)) == model.describe(outcome) or (
                    row in refused and isinstance(record.get(name), list | dict | type(None))
                )


def test_all_rules_are_among_the_models() -> None:
    for seeds in (FORESTS, NETWORKS):
        rules = Counter(type(asked(seed)[0].rule) for seed in seeds)
        assert set(rules) == {Threshold, Argmax, OneVsRest, Tolerance}


@pytest.mark.parametrize("seed", [*FORESTS[:4], *NETWORKS[:4]])
def test_documents_exist_for_all_models(tmp_path: Path, seed: int) -> None:
    model, weights, _, _ = asked(seed)
    save_model(FairPredictor(model, weights=weights), tmp_path / "m.feta")
    addresses = ("/v1/schema", "/v1/card", "/openapi.json", "/v2/models/m", "/metrics")
    for got in answer(tmp_path / "m.feta", [("GET", address, None) for address in addresses]):
        assert got.status_code == 200
