"""What the service answers to good requests, compared with FairPredictor."""

import hashlib
import json
from typing import Any

import httpx
import numpy as np
import pytest

from feta import verify
from feta.query import FairAt
from feta.verdict.verdict import Unfair
from tests import oracle
from tests.serve.service import SPACE, decisions, predictor, records

DECIDER = predictor(0)
JSON = {"content-type": "application/json"}


def test_single_records_are_decided_as_by_the_predictor(client: httpx.Client) -> None:
    people = records(60, seed=1)
    answers = [client.post("/v1/decide", json=person).json() for person in people]
    assert [answer["decision"] for answer in answers] == decisions(DECIDER, people)
    assert {answer["decision"] for answer in answers} == {"refused", "approved"}
    assert len({answer["model"] for answer in answers}) == 1


@pytest.mark.parametrize("n_people", [1, 30, 2500])
def test_lists_are_decided_as_by_the_predictor(client: httpx.Client, n_people: int) -> None:
    people = records(n_people, seed=2)
    answer = client.post("/v1/decide", json=people).json()
    assert answer["decisions"] == decisions(DECIDER, people)
    assert answer["refused"] == []


def test_sensitive_values_are_never_read(client: httpx.Client) -> None:
    person = records(1, seed=3)[0]
    expected = client.post("/v1/decide", json=person).json()
    for value in (18, 27, 900, None, "nonsense", -1.5):
        answer = client.post("/v1/decide", json=person | {"age": value, "sex": value})
        assert answer.json() == expected


def test_bad_rows_are_refused_by_column_while_others_are_decided(client: httpx.Client) -> None:
    people: list[Any] = records(30, seed=4)
    people[3] = people[3] | {"debt": 11}
    people[7] = people[7] | {"income": "much"}
    people[8] = {"income": 3, "debt": 1}
    people[9] = people[9] | {"incom": 3}
    people[10] = "a person"
    answer = client.post("/v1/decide", json=people).json()
    good = [row for row in range(30) if row not in (3, 7, 8, 9, 10)]
    assert [answer["decisions"][row] for row in good] == decisions(
        DECIDER, [people[row] for row in good]
    )
    assert [answer["decisions"][row] for row in (3, 7, 8, 9, 10)] == [None] * 5
    refused = {one["row"]: (one["column"], one["why"]) for one in answer["refused"]}
    assert {row: column for row, (column, _) in refused.items()} == {
        3: "debt", 7: "income", 8: "town", 9: "incom", 10: None
    }  # fmt: skip
    assert refused[3][1].startswith("'debt' is invalid: got 11; expected a number from 0 to 10")
    assert refused[8][1] == "missing column: expected 'town'; null if it is empty"
    assert refused[9][1] == "unknown column: got 'incom'; did you mean 'income'?"
    assert refused[10][1] == "not a record: got str; expected an object of columns"
    assert all("row" not in why for _, why in refused.values())


@pytest.mark.parametrize("row", [[records(1)[0]], [], "income", 17, None, True])
def test_a_list_of_something_else_is_not_a_list_of_records(
    client: httpx.Client, row: object
) -> None:
    answer = client.post("/v1/decide", json=[row])
    assert answer.json()["decisions"] == [None]
    why = f"not a record: got {type(row).__name__}; expected an object of columns"
    assert answer.json()["refused"] == [{"row": 0, "column": None, "why": why}]


@pytest.mark.parametrize(
    ("column", "cell"),
    [
        ("income", "30"), ("debt", "3.5"), ("debt", "nan"), ("income", ""), ("income", True),
        ("debt", False), ("town", " a"), ("town", "a\n"), ("town", "A"), ("town", "\uff41"),
        ("town", "nan"), ("town", "NA"), ("income", 2**53 + 1), ("income", 2**64), ("debt", 11),
    ],
)  # fmt: skip
def test_a_value_is_never_converted_to_another(
    client: httpx.Client, column: str, cell: object
) -> None:
    answer = client.post("/v1/decide", json=records(1)[0] | {column: cell})
    assert answer.status_code == 422
    assert answer.json()["column"] == column


def test_equal_numbers_are_decided_equally(client: httpx.Client) -> None:
    texts = ("0", "0.0", "-0.0", "0e5", "1e-400")
    numbers = [f'{{"income": {text}, "debt": {text}, "town": null}}' for text in texts]
    answers = [client.post("/v1/decide", content=text, headers=JSON).json() for text in numbers]
    expected = decisions(DECIDER, [{"income": 0, "debt": 0, "town": None}])
    assert [answer["decision"] for answer in answers] == expected * 5
    listed = client.post("/v1/decide", content=f"[{','.join(numbers)}]", headers=JSON).json()
    assert listed["decisions"] == expected * 5


def test_the_last_of_repeated_columns_counts(client: httpx.Client) -> None:
    people = records(60, seed=1)
    names = decisions(DECIDER, people)
    first, second = (people[names.index(name)] for name in ("refused", "approved"))
    for one, other in ((first, second), (second, first)):
        text = f"{json.dumps(other)[:-1]}, {json.dumps(one)[1:]}"
        answer = client.post("/v1/decide", content=text, headers=JSON).json()
        assert [answer["decision"]] == decisions(DECIDER, [one]) != decisions(DECIDER, [other])


def test_many_bad_rows_are_all_listed(client: httpx.Client) -> None:
    people = [person | {"debt": -1} for person in records(40, seed=5)]
    people[20]["debt"] = 1.0
    answer = client.post("/v1/decide", json=people).json()
    assert [one["row"] for one in answer["refused"]] == [row for row in range(40) if row != 20]
    assert answer["decisions"][20] == decisions(DECIDER, [people[20]])[0]


def test_people_outside_open_limits_are_decided(client: httpx.Client) -> None:
    people = [person | {"income": 400 + row} for row, person in enumerate(records(5, seed=6))]
    answer = client.post("/v1/decide", json=people).json()
    assert answer["decisions"] == decisions(DECIDER, people)


def test_an_arrow_stream_is_decided_as_records(client: httpx.Client) -> None:
    pa = pytest.importorskip("pyarrow")
    people = records(300, seed=7)
    table = pa.Table.from_pylist(people)
    encoded = table.column("town").dictionary_encode()
    for content in (table, table.set_column(2, "town", encoded)):
        answer = client.post(
            "/v1/decide",
            content=stream(pa, content),
            headers={"content-type": "application/vnd.apache.arrow.stream"},
        )
        assert answer.json()["decisions"] == decisions(DECIDER, people)


def stream(pa: Any, table: Any, **options: Any) -> bytes:  # noqa: ANN401 - pyarrow has no types
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, **options) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


def test_arrow_streams_that_could_exhaust_memory_are_refused(client: httpx.Client) -> None:
    pa = pytest.importorskip("pyarrow")
    zeros = pa.table({"debt": np.zeros(9000)})
    compressed = stream(pa, zeros, options=pa.ipc.IpcWriteOptions(compression="zstd"))
    nested = stream(pa, pa.table({"debt": [[1.0]]}))
    words = pa.DictionaryArray.from_arrays(pa.array([0]), pa.array(["x" * 10_000]))
    bombs = {
        "compressed buffers": compressed,
        "compressed buffers ": stream(
            pa, pa.table({"town": words}), options=pa.ipc.IpcWriteOptions(compression="lz4")
        ),
        "the column 'debt' of type list": nested,
        "ArrowInvalid": compressed[:200],
        "ArrowInvalid ": b"nonsense" * 9,
    }
    for words_of_it, content in bombs.items():
        answer = client.post(
            "/v1/decide",
            content=content,
            headers={"content-type": "application/vnd.apache.arrow.stream"},
        )
        assert answer.status_code == 400
        assert f"invalid Arrow stream: got {words_of_it.strip()}" in answer.json()["error"]


def test_arrow_columns_that_share_bytes_are_refused(client: httpx.Client) -> None:
    """One text of a dictionary in thousands of small batches would become thousands of texts."""
    pa = pytest.importorskip("pyarrow")
    words = pa.DictionaryArray.from_arrays(pa.array([0], pa.int32()), pa.array(["x" * 300_000]))
    batch = pa.record_batch({"town": words})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        for _ in range(200):
            writer.write_batch(batch)
    unknown = stream(pa, pa.table({"debt": [1.0], "dbt": [1.0]}))
    for content, status, words_of_it in (
        (bytes(sink.getvalue().to_pybytes()), 400, "larger than the stream"),
        (unknown, 422, "unknown column: got 'dbt'"),
    ):
        assert len(content) < 2**20
        answer = client.post(
            "/v1/decide",
            content=content,
            headers={"content-type": "application/vnd.apache.arrow.stream"},
        )
        assert answer.status_code == status
        assert words_of_it in answer.json()["error"]


def test_a_what_if_lists_the_decisions_of_all_counterparts(client: httpx.Client) -> None:
    for person in records(8, seed=8, sensitive=True):
        answer = client.post("/v1/whatif", json=person).json()
        row = SPACE.encode(person)[0]
        others = oracle.counterparts(DECIDER.model, row)
        assert answer["decisions"] == "".join(str(oracle.decide(DECIDER.model, p)) for p in others)
        assert answer["all"] == len(others) == 20
        index = answer["own"][0] * 2 + answer["own"][1]
        assert np.array_equal(others[index], row)
        assert answer["axes"][0]["values"][answer["own"][0]] == person["age"]
        assert answer["decision"] == decisions(DECIDER, [person])[0]
        own = oracle.decide(DECIDER.model, row)
        assert answer["own_decision"] == ("refused", "approved")[own]
        assert answer["fair"] == oracle.is_fair(DECIDER.model, row)
        verdict = verify(FairAt(DECIDER.model, row))
        assert isinstance(verdict, Unfair) == (answer["pair"] is not None)
        if answer["pair"] is not None:
            first, second = answer["pair"]["people"]
            assert first == person
            pair = [SPACE.encode(one)[0] for one in (first, second)]
            assert oracle.differs(DECIDER.model, *pair)
            assert float(oracle.worst_gap(DECIDER.model, row) or 0) == pytest.approx(
                answer["pair"]["gap"]
            )


def test_the_inference_protocol_decides_columns(client: httpx.Client) -> None:
    people = records(12, seed=9)
    metadata = client.get("/v2/models/credit").json()
    assert [one["name"] for one in metadata["inputs"]] == ["income", "debt", "town"]
    assert [one["datatype"] for one in metadata["inputs"]] == ["INT64", "FP64", "BYTES"]
    tensors = [
        {
            "name": one["name"],
            "datatype": one["datatype"],
            "shape": [12],
            "data": [person[one["name"]] for person in people],
        }
        for one in metadata["inputs"]
    ]
    version = metadata["versions"][0]
    for address in ("/v2/models/credit/infer", f"/v2/models/credit/versions/{version}/infer"):
        answer = client.post(address, json={"id": "7", "inputs": tensors}).json()
        assert answer["outputs"][0]["data"] == decisions(DECIDER, people)
        assert (answer["id"], answer["model_version"]) == ("7", version)
    for address in ("", f"/versions/{version}", "/ready"):
        assert client.get(f"/v2/models/credit{address}").status_code == 200
    assert client.get("/v2/models/credit/versions/old/ready").status_code == 404


def test_documents_describe_the_model(client: httpx.Client) -> None:
    schema = client.get("/v1/schema").json()
    assert [column["name"] for column in schema["columns"]] == [a.name for a in SPACE.attributes]
    assert schema["columns"][0]["sensitive"]
    assert schema["columns"][3]["help"] == "a number from 0 to 10"
    card = client.get("/v1/card").json()
    assert card["read"] == ["income", "debt", "town"]
    assert card["sensitive"] == ["age", "sex"]
    assert card["fingerprint"] == DECIDER.model.fingerprint
    assert card["vote"]["kind"] == "majority"
    document = client.get("/openapi.json").json()
    person = document["components"]["schemas"]["Person"]
    assert person["required"] == ["income", "debt", "town"]
    assert person["properties"]["debt"] == {
        "description": "a number from 0 to 10", "type": "number", "minimum": 0.0, "maximum": 10.0
    }  # fmt: skip
    assert person["properties"]["town"]["enum"] == ["a", "b", None]
    posted = {path for path, methods in document["paths"].items() if "post" in methods}
    one = "/v2/models/credit"
    assert posted == {
        "/v1/decide", "/v1/explain", "/v1/reload", "/v1/whatif",
        f"{one}/infer", f"{one}/versions/{{version}}/infer",
    }  # fmt: skip


def test_the_document_lists_all_addresses(client: httpx.Client) -> None:
    document = client.get("/openapi.json").json()
    version = client.get("/v1/card").json()["model"]
    for path, methods in document["paths"].items():
        address = path.replace("{version}", version)
        for method in methods.keys() & {"get", "post"}:
            status = client.request(method, address, json={} if method == "post" else None)
            assert str(status.status_code) in methods[method]["responses"], address


def test_health_and_metrics_answer(client: httpx.Client) -> None:
    for address in ("/health/live", "/health/ready", "/v2/health/live", "/v2/health/ready"):
        assert client.get(address).status_code == 200
    before = count(client, 'feta_people_total{outcome="approved"}')
    people = records(50, seed=10)
    client.post("/v1/decide", json=people)
    client.get("/not/an/address/17")
    expected = before + decisions(DECIDER, people).count("approved")
    assert count(client, 'feta_people_total{outcome="approved"}') == expected
    text = client.get("/metrics").text
    assert 'feta_requests_total{route="(other)",status="404"}' in text
    assert "/not/an/address" not in text


def count(client: httpx.Client, name: str) -> float:
    lines = [one for one in client.get("/metrics").text.splitlines() if one.startswith(name)]
    return float(lines[0].rpartition(" ")[2]) if lines else 0.0


def test_every_answer_has_security_headers(client: httpx.Client) -> None:
    for address in ("/", "/page.js", "/v1/schema", "/nowhere"):
        headers = client.get(address).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["cache-control"] == "no-store"
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert "server" not in headers
    for address in ("/", "/page.js", "/page.css"):
        headers = client.get(address).headers
        assert headers["x-frame-options"] == "DENY"
        assert headers["referrer-policy"] == "no-referrer"


def test_answers_name_the_file(
    client: httpx.Client, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "served0" / "credit.feta"
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert client.post("/v1/decide", json=records(1)[0]).json()["model"] == digest
