"""Applications next to which `campaigns.serve_load` measures the service.

`bare` answers a constant; `unfair` evaluates the unfair network in onnxruntime, with the same
parsing and encoding of records, and without checks, log and metrics.
"""

import os
from functools import cache
from typing import Any

import orjson

HEADERS = [(b"content-type", b"application/json")]


async def bare(scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401 - ASGI
    """Answer a constant."""
    if scope["type"] == "http":
        await receive()
        await _answer(send, b'{"decision":"approved"}')


async def unfair(scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401 - ASGI
    """Answer the decision of the unfair network."""
    if scope["type"] == "http":
        model, session = _opened()
        record = orjson.loads((await receive())["body"])
        score = session.run(None, {"people": model.space.encode(record)})[0][0, 0]
        await _answer(send, orjson.dumps({"decision": model.outcomes[int(score >= 0.5)]}))


async def _answer(send: Any, body: bytes) -> None:  # noqa: ANN401 - ASGI
    length = (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": 200, "headers": [*HEADERS, length]})
    await send({"type": "http.response.body", "body": body})


@cache
def _opened() -> tuple[Any, Any]:
    import onnxruntime  # noqa: PLC0415 - `bare` does not need it

    from feta import load_model  # noqa: PLC0415 - the same

    folder = os.environ["SERVED_FOLDER"]
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    providers = ["CPUExecutionProvider"]
    session = onnxruntime.InferenceSession(f"{folder}/unfair.onnx", options, providers=providers)
    return load_model(f"{folder}/first.feta"), session
