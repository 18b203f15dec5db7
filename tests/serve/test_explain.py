"""/v1/explain, compared with the predictor and with a search by hand."""

import httpx
import pytest

from tests.serve.service import decisions, predictor, records

DECIDER = predictor(0)
PEOPLE = [one for one in records(40, seed=8) if decisions(DECIDER, [one]) == ["refused"]]


def explain(client: httpx.Client, record: object, change: object, **more: str) -> httpx.Response:
    return client.post("/v1/explain", json={"record": record, "change": change, **more})


def test_reasons_are_the_smallest_changes(client: httpx.Client) -> None:
    found = 0
    for person in PEOPLE:
        answer = explain(client, person | {"age": 20, "sex": None}, ["income"]).json()
        approved = [
            abs(income - person["income"])
            for income in range(61)
            if decisions(DECIDER, [person | {"income": income}]) == ["approved"]
        ]
        assert answer["minimal"]
        assert answer["decision"] == "refused"
        if not approved:
            assert (answer["finding"], answer["changes"]) == ("no allowed change suffices", [])
            continue
        found += 1
        (change,) = answer["changes"]
        assert change["before"] == person["income"]
        assert abs(change["after"] - person["income"]) == min(approved)
        assert "The principal reason: income is too" in answer["sentences"][1]
    assert found


def test_a_search_over_all_columns_names_no_sensitive_one(client: httpx.Client) -> None:
    model = client.get("/v1/card").json()["model"]
    for person in PEOPLE[:3]:
        change = ["income", "debt:down:step=0.5", "town"]
        answer = explain(client, person, change, favorable="approved").json()
        assert answer["model"] == model
        changed = person | {one["column"]: one["after"] for one in answer["changes"]}
        if answer["changes"]:
            assert decisions(DECIDER, [changed]) == ["approved"]
        assert not {"age", "sex"} & {one["column"] for one in answer["changes"]}


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ([], 400, "the body has another form; expected an object with `record`"),
        ({"record": PEOPLE[0]}, 400, "`change` has another form; expected a list of texts"),
        ({"record": PEOPLE[0], "change": "income"}, 400, "expected a list of texts"),
        ({"record": PEOPLE[0], "change": [1]}, 400, "expected a list of texts"),
        ({"record": PEOPLE[0], "change": ["income"], "x": 1}, 400, "expected an object"),
        (
            {"record": PEOPLE[0], "change": ["income"], "favorable": 1},
            400,
            "the name of a decision",
        ),
        (
            {"record": PEOPLE[0], "change": ["age"]},
            422,
            "'age' is no reason: got a sensitive column",
        ),
        ({"record": PEOPLE[0], "change": []}, 422, "expected one column or more"),
        ({"record": PEOPLE[0], "change": ["incom"]}, 422, "did you mean 'income'"),
        ({"record": PEOPLE[0], "change": ["debt:step=1e-300"]}, 422, "expected at most 100,000"),
        ({"record": PEOPLE[0], "change": ["income:step=1e999"]}, 422, "expected a positive number"),
        ({"record": {"income": 3}, "change": ["income"]}, 422, "missing column"),
        ({"record": [], "change": ["income"]}, 422, "not a record"),
        ({"record": PEOPLE[0] | {"debt": 11}, "change": ["income"]}, 422, "'debt' is invalid"),
    ],
)
def test_questions_that_cannot_be_answered(
    client: httpx.Client, body: object, status: int, words: str
) -> None:
    answer = client.post("/v1/explain", json=body)
    assert answer.status_code == status
    assert words in answer.json()["error"]
