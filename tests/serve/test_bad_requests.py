"""Sixty bad requests: each is refused in words, and the service goes on as before."""

import json
import socket
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.serve.conftest import wait_until_ready
from tests.serve.service import Server, decisions, helper_of, predictor, records, serving, write

PERSON = records(1, seed=1)[0]
WHOLE = PERSON | {"age": 20, "sex": "male"}
JSON = {"content-type": "application/json"}


@dataclass(frozen=True)
class Bad:
    name: str
    status: int
    words: str
    content: bytes = b""
    method: str = "POST"
    path: str = "/v1/decide"
    headers: tuple[tuple[str, str], ...] = tuple(JSON.items())


def of_json(
    name: str, words: str, body: object, *, path: str = "/v1/decide", status: int = 0
) -> Bad:
    return Bad(name, status or 422, words, json.dumps(body).encode(), path=path)


def nested(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


def tensor(**changes: object) -> dict[str, object]:
    inputs = [
        {"name": "income", "datatype": "INT64", "shape": [1], "data": [3]},
        {"name": "debt", "datatype": "FP64", "shape": [1], "data": [3.0]},
        {"name": "town", "datatype": "BYTES", "shape": [1], "data": ["a"]} | changes,
    ]
    return {"inputs": inputs}


INFER = "/v2/models/credit/infer"
BAD = [
    # Not JSON.
    Bad("empty body", 400, "not valid JSON"),
    Bad("half an object", 400, "not valid JSON", b'{"income": 3'),
    Bad("a word", 400, "not valid JSON", b"income=3&debt=4"),
    Bad("NaN", 400, "not valid JSON", b'{"income": NaN, "debt": 1, "town": "a"}'),
    Bad("infinity", 400, "not valid JSON", b'{"income": 1, "debt": Infinity, "town": "a"}'),
    Bad("a trailing comma", 400, "not valid JSON", b'{"income": 1,}'),
    Bad("two values", 400, "not valid JSON", b"{} {}"),
    Bad("UTF-16", 400, "not valid JSON", json.dumps(PERSON).encode("utf-16")),
    Bad("Latin-1", 400, "not valid JSON", b'{"town": "\xe4"}'),
    Bad("a zero byte", 400, "not valid JSON", b'{"town": "\x00"}'),
    Bad("a lone surrogate", 400, "not valid JSON", b'{"town": "\\ud800"}'),
    Bad("deeply nested", 400, "", nested(100_000)),
    of_json("nested in what-if", "not a record: got list", [[WHOLE]], path="/v1/whatif"),
    Bad("a bomb of objects", 400, "", b'{"a":' * 50_000 + b"1" + b"}" * 50_000),
    # JSON of the wrong shape.
    Bad("a number", 400, "invalid body: got int", b"17"),
    Bad("a text", 400, "invalid body: got str", b'"income"'),
    Bad("null", 400, "invalid body: got NoneType", b"null"),
    Bad("true", 400, "invalid body: got bool", b"true"),
    Bad("an empty list", 400, "no people: got an empty list", b"[]"),
    Bad("an empty record", 422, "missing column: expected 'income'", b"{}"),
    Bad("too many people", 413, "too many people: got 10,001", b"[" + b"{}," * 10_000 + b"{}]"),
    # Values.
    of_json("a missing column", "missing column: expected 'debt'", {"income": 1, "town": "a"}),
    of_json("an unknown column", "unknown column: got 'incme'; did", PERSON | {"incme": 1}),
    of_json("a strange column", "unknown column", PERSON | {"\u202e<script>": 1}),
    of_json("a prototype", "unknown column", PERSON | {"__proto__": {"town": "a"}}),
    of_json("a text for a number", "'income' is invalid", PERSON | {"income": "ten"}),
    of_json("a text with a number", "'debt' is invalid", PERSON | {"debt": "ten"}),
    of_json("a fraction", "'income' is invalid", PERSON | {"income": 2.5}),
    of_json("a boolean", "'income' is invalid", PERSON | {"income": True}),
    of_json("null for a number", "'income'", PERSON | {"income": None}),
    of_json("a list for a number", "'income' is invalid: got a list", PERSON | {"income": [1]}),
    of_json("an object", "'town' is invalid: got a dict", PERSON | {"town": {"a": 1}}),
    of_json("a huge number", "'debt' is invalid", PERSON | {"debt": 1e300}),
    Bad("a longer number", 400, "not valid JSON", b'{"income": 1' + b"0" * 400 + b"}"),
    of_json("a long integer", "'income' is", PERSON | {"income": 10**18}),
    of_json("a negative number", "'debt' is invalid: got -1", PERSON | {"debt": -1}),
    of_json("an unknown category", "'town' is invalid: got 'c'", PERSON | {"town": "c"}),
    of_json("an empty category", "'town' is invalid", PERSON | {"town": ""}),
    of_json("a long category", "'town' is invalid", PERSON | {"town": "x" * 5000}),
    of_json("a number as category", "'town' is invalid: got 3", PERSON | {"town": 3}),
    # What-if.
    of_json("no sensitive value", "missing column: expected 'age'", PERSON, path="/v1/whatif"),
    of_json("a wrong one", "'age' is invalid: got 17", WHOLE | {"age": 17}, path="/v1/whatif"),
    of_json("an unknown sex", "'sex' is invalid", WHOLE | {"sex": "x"}, path="/v1/whatif"),
    of_json("a list in what-if", "not a record: got list", [WHOLE], path="/v1/whatif"),
    # Open Inference Protocol.
    of_json("no inputs", "invalid `inputs`", {}, path=INFER, status=400),
    of_json("a list of tensors", "invalid the request", [], path=INFER, status=400),
    of_json("another shape", "the shape of 'town'", tensor(shape=[2]), path=INFER, status=400),
    of_json("no data", "invalid the data of 'town'", tensor(data="a"), path=INFER, status=400),
    of_json("another type", "invalid the datatype", tensor(datatype="X"), path=INFER, status=400),
    of_json("a tensor twice", "'debt' twice", tensor(name="debt"), path=INFER, status=400),
    of_json("a bad row", "row 0: 'town' is", tensor(data=["c"]), path=INFER, status=400),
    # Content types and encodings.
    Bad("no content type", 415, "invalid content type: got ''", b"{}", headers=()),
    Bad("a form", 415, "got 'text/plain'", b"{}", headers=(("content-type", "text/plain"),)),
    Bad("a charset", 415, "invalid charset", b"{}",
        headers=(("content-type", "application/json; charset=utf-16"),)),
    Bad("gzip", 415, "compressed body: got 'gzip'", b"\x1f\x8b",
        headers=(*JSON.items(), ("content-encoding", "gzip"))),
    Bad("not Arrow", 400, "invalid Arrow stream", b"ARROW1",
        headers=(("content-type", "application/vnd.apache.arrow.stream"),)),
    Bad("a long body", 413, "the body is too long: got 4,194,305 bytes", b" " * (2**22 + 1)),
    # Addresses and methods.
    Bad("the wrong method", 405, "wrong method: got DELETE", method="DELETE"),
    Bad("a slash at the end", 404, "unknown address: got '/v1/decide/'", path="/v1/decide/"),
    Bad("another case", 404, "unknown address: got '/V1/decide'", path="/V1/decide"),
    Bad("a file", 404, "unknown address", method="GET", path="/../../etc/passwd"),
    Bad("an encoded file", 404, "unknown address", method="GET", path="/%2e%2e/%2e%2e/etc/passwd"),
    Bad("a source file", 404, "unknown address", method="GET", path="/page.js/../application.py"),
    Bad("another model", 404, "unknown address", b"{}", path="/v2/models/other/infer"),
    Bad("another version", 404, "unknown version", b"{}",
        path="/v2/models/credit/versions/1/infer"),
]  # fmt: skip


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.name)
def test_a_bad_request_is_refused_in_words(client: httpx.Client, bad: Bad) -> None:
    if "Arrow" in bad.words:
        pytest.importorskip("pyarrow")
    answer = client.request(bad.method, bad.path, content=bad.content, headers=dict(bad.headers))
    assert answer.status_code == bad.status, answer.text
    error = answer.json()["error"]
    assert bad.words in error
    assert "Traceback" not in error
    assert 10 < len(error) < 600
    assert answer.headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"


def test_there_are_sixty() -> None:
    assert len(BAD) >= 60


@pytest.fixture
def connection(server: Server) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as open_connection:
        yield open_connection


def answered(connection: socket.socket) -> str:
    """Return all that the server sends until it closes the connection."""
    parts = []
    try:
        while part := connection.recv(65536):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts).decode()


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"GARBAGE\r\n\r\n", "400"),
        (b"GET / HTTP/9.9\r\n\r\n", "400"),
        (b"GET /v1/schema HTTP/1.1\r\nHost: x\r\nbad header\r\n\r\n", "400"),
        (b"POST /v1/decide HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", "400"),
        (b"POST /v1/decide HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
         "400"),
        (b"POST /v1/decide HTTP/1.1\r\nHost: x\r\nContent-Length: 2, 2\r\n\r\n{}", "400"),
        (b"POST /v1/decide HTTP/1.1\r\nHost: x\r\nContent-Length : 2\r\n\r\n{}", "400"),
        (b"POST /v1/decide HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
         "400"),
        (b"POST /v1/decide HTTP/1.1\r\nX: a\r\n b\r\nContent-Length: 2\r\n\r\n{}", "400"),
        (b"POST /v1/decide HTTP/1.1\nHost: x\nContent-Length: 2\n\n{}", "400"),
        (b"CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n", "400"),
        (b"POST /v1/decide HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n"
         b"Content-Type: application/json\r\nConnection: close\r\n\r\n", "413"),
        (b"POST /v1/decide HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked"
         b"\r\n\r\n0\r\n\r\n", "400"),
        (b"GET / HTTP/1.1\r\n" + b"".join(b"h%d: x\r\n" % n for n in range(20_000)), "431"),
        (b"GET / HTTP/1.1\r\nHost: x\r\nlong: " + b"x" * 200_000, "431"),
        (b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", "4"),
    ],
)  # fmt: skip
def test_heads_that_are_malformed_or_too_large_end_the_connection(
    connection: socket.socket, head: bytes, status: str, client: httpx.Client
) -> None:
    with suppress(ConnectionResetError, BrokenPipeError):  # refused while it is sent
        connection.sendall(head)
    text = answered(connection)
    assert not text or text.startswith(f"HTTP/1.1 {status}"), text[:200]
    assert "Traceback" not in text
    assert client.get("/health/ready").status_code == 200


@pytest.mark.parametrize("protocol", ["h2c", "websocket"])
def test_an_upgrade_is_refused_and_its_body_is_no_request(
    connection: socket.socket, protocol: str, client: httpx.Client
) -> None:
    before = metric(client)
    hidden = b"POST /v1/decide HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"
    connection.sendall(
        b"POST /v1/decide HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: %b\r\n"
        b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
        % (protocol.encode(), len(hidden), hidden)
    )
    text = answered(connection)
    assert text.count("HTTP/1.1") == 2  # the status line, and the words
    assert "HTTP/1.1 400 Bad Request" in text
    assert "no other protocol is spoken here" in text
    assert metric(client) == before


def test_a_request_with_too_many_headers_is_not_answered_beside_its_refusal(
    connection: socket.socket, client: httpx.Client
) -> None:
    """Head and body arrive in one piece, so the parser has read all of it when it is refused."""
    before, body = metric(client), json.dumps(PERSON).encode()
    head = b"POST /v1/decide HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    head += b"".join(b"h%d: %b\r\n" % (n, b"x" * 1000) for n in range(40))
    connection.sendall(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
    text = answered(connection)
    assert text.count("HTTP/1.1") == 1
    assert text.startswith("HTTP/1.1 431")
    assert metric(client) == before


def test_pipelined_requests_are_answered_in_order(
    connection: socket.socket, client: httpx.Client
) -> None:
    """A body may end in the same piece in which the next head begins."""
    people = records(400, seed=2)
    parts = []
    for body in (people, people[0], people[:7]):
        content = json.dumps(body).encode()
        parts.append(
            b"POST /v1/decide HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            b"Content-Length: %d\r\n\r\n%b" % (len(content), content)
        )
    parts[-1] = parts[-1].replace(b"Host: x", b"Host: x\r\nConnection: close")
    stream = b"".join(parts)
    cut = len(parts[0]) + 30
    connection.sendall(stream[:cut])
    client.get("/health/ready")
    connection.sendall(stream[cut:])
    answers = [json.loads(one.partition("\r\n\r\n")[2])
               for one in answered(connection).split("HTTP/1.1 200 OK")[1:]]  # fmt: skip
    names = decisions(predictor(0), people)
    assert [one.get("decisions", one.get("decision")) for one in answers] == [
        names, names[0], names[:7]
    ]  # fmt: skip


def metric(client: httpx.Client) -> list[str]:
    lines = client.get("/metrics").text.splitlines()
    return [line for line in lines if line.startswith('feta_requests_total{route="/v1/decide"')]


def test_no_answer_lets_pages_of_other_sites_read_it(client: httpx.Client) -> None:
    foreign = {"origin": "http://evil", "access-control-request-method": "POST"}
    for method in ("OPTIONS", "POST", "GET"):
        answer = client.request(method, "/v1/decide", headers=foreign)
        assert answer.status_code in (405, 415)
        assert not [name for name in answer.headers if name.startswith("access-control")]
    for site in ("cross-site", "same-site"):
        refused = client.post("/v1/reload", headers={"sec-fetch-site": site})
        assert refused.status_code == 403
        assert "a page of another site asks for a reload" in refused.json()["error"]


def test_slow_heads_and_bodies_are_ended(server: Server) -> None:
    """Both connections wait at the same time; a fast client is answered meanwhile."""
    head = b"POST /v1/decide HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    started = [head, head + b"Content-Length: 50\r\n\r\n{", head + b"Content-Length: 9000\r\n\r\n{"]
    connections = []
    for start in started:
        connection = socket.create_connection(("127.0.0.1", server.port), timeout=60)
        connection.sendall(start)
        connections.append(connection)
    with httpx.Client(base_url=server.url) as fast:
        assert fast.post("/v1/decide", json=PERSON).status_code == 200
    for connection in connections:
        with connection:
            text = answered(connection)  # until the server closes the connection
            assert text.startswith("HTTP/1.1 408")
            assert "is too slow" in text


def test_chunks_that_exceed_the_limit_are_refused(client: httpx.Client) -> None:
    def chunks() -> Iterator[bytes]:
        for _ in range(80):
            yield b" " * 2**16

    answer = client.post("/v1/decide", content=chunks(), headers=JSON)
    assert answer.status_code == 413


def test_memory_stays_flat_and_answers_right_after_bad_requests(tmp_path: Path) -> None:
    decider, people = write(tmp_path / "credit.feta", 0), records(50, seed=12)
    with serving(tmp_path / "credit.feta") as server:
        wait_until_ready(server)
        with httpx.Client(base_url=server.url, timeout=60) as client:
            sizes = []
            for _ in range(3):
                for bad in BAD:
                    content = bad.content[:200_000]
                    client.request(bad.method, bad.path, content=content, headers=dict(bad.headers))
                sizes.append(memory(server))
            answer = client.post("/v1/decide", json=people).json()
        assert answer["decisions"] == decisions(decider, people)
        assert sizes[2] - sizes[0] < 40  # MB


def memory(server: Server) -> float:
    """Return the resident memory of a server and its helper in MB."""
    if not Path("/proc/self/task").exists():
        pytest.skip("this system has no /proc")
    total = 0
    for pid in (server.process.pid, helper_of(server.process.pid)):
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        total += int(next(one for one in lines if one.startswith("VmRSS")).split()[1])
    return total / 1024


def test_decisions_of_the_test_model_differ() -> None:
    assert len(set(decisions(predictor(0), records(50, seed=12)))) == 2
