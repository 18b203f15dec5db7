"""Bodies of requests: their length, their encoding, and how long they may take."""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from http import HTTPStatus
from typing import Any

import orjson

from feta.serve.limits import ServiceLimits
from feta.serve.refusal import Refusal

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Scope = MutableMapping[str, Any]
Headers = dict[bytes, bytes]

JSON = b"application/json"
ARROW = b"application/vnd.apache.arrow.stream"


def declared_length(headers: Headers, limits: ServiceLimits) -> int | None:
    """Return the declared length, None if there is none; raise if it is too long."""
    text = headers.get(b"content-length")
    if text is None:
        return None
    if not text.isdigit() or len(text) > 18:  # noqa: PLR2004 - digits of an int64
        raise Refusal(HTTPStatus.BAD_REQUEST, "invalid Content-Length: expected a number of bytes")
    if int(text) > limits.body_bytes:
        raise _too_long(int(text), limits)
    return int(text)


def media_type(headers: Headers) -> bytes:
    """Return the content type; raise unless it is one that the service reads."""
    if headers.get(b"content-type") == JSON and b"content-encoding" not in headers:
        return JSON
    encoding = headers.get(b"content-encoding", b"identity").strip().lower()
    if encoding != b"identity":
        raise Refusal(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            f"compressed body: got {_shown(encoding)}; expected no Content-Encoding",
        )
    full = headers.get(b"content-type", b"")
    kind, _, parameters = full.partition(b";")
    kind = kind.strip().lower()
    if kind not in (JSON, ARROW):
        raise Refusal(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            f"invalid content type: got {_shown(kind)}; expected application/json or "
            "application/vnd.apache.arrow.stream",
        )
    charset = parameters.strip().lower()
    if charset.startswith(b"charset") and b"utf-8" not in charset and b"utf8" not in charset:
        raise Refusal(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            f"invalid charset: got {_shown(charset)}; expected utf-8",
        )
    return kind


async def read_body(receive: Receive, limits: ServiceLimits) -> bytes:
    """Read the body; raise if it is too long or too slow."""
    parts = await read_parts(receive, limits)
    return parts[0] if len(parts) == 1 else b"".join(parts)


async def read_parts(receive: Receive, limits: ServiceLimits) -> list[bytes]:
    """Read the body in parts, because joining a long one would delay other requests."""
    parts: list[bytes] = []
    size, more = 0, True
    try:
        async with asyncio.timeout(limits.body_seconds):
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ConnectionResetError
                parts.append(message.get("body", b""))
                size, more = size + len(parts[-1]), message.get("more_body", False)
                if size > limits.body_bytes:
                    raise _too_long(size, limits)
    except TimeoutError:
        raise _too_slow(limits) from None
    return parts


def parse_json(body: bytes) -> Any:  # noqa: ANN401 - JSON
    """Parse a body; raise with the reason in words."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise Refusal(
            HTTPStatus.BAD_REQUEST, f"the body is not valid JSON: got {error}; expected UTF-8 JSON"
        ) from None


def _too_long(size: int, limits: ServiceLimits) -> Refusal:
    return Refusal(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        f"the body is too long: got {size:,} bytes or more; expected at most "
        f"{limits.body_bytes:,}; send several requests",
    )


def _too_slow(limits: ServiceLimits) -> Refusal:
    return Refusal(
        HTTPStatus.REQUEST_TIMEOUT,
        f"the body is too slow: got no end of it; expected all of it within "
        f"{limits.body_seconds:g} seconds",
    )


def _shown(text: bytes) -> str:
    return repr(text[:60].decode("latin-1"))
