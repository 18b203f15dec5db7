"""What each address answers; all work is done by functions that know nothing of HTTP."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import orjson

from feta.errors import FetaError
from feta.serve.arrow import records_of_arrow
from feta.serve.audit_log import AuditLog
from feta.serve.body import (
    ARROW,
    Headers,
    Receive,
    declared_length,
    media_type,
    parse_json,
    read_body,
)
from feta.serve.decisions import DecidedPeople, check_number, decide_records
from feta.serve.inference import infer
from feta.serve.limits import ServiceLimits
from feta.serve.metrics import Metrics
from feta.serve.refusal import Refusal
from feta.serve.reloading import CurrentModel
from feta.serve.served import Served
from feta.serve.slots import Slots
from feta.serve.whatif import what_if

logger = logging.getLogger("feta.serve")

# People decided between two looks at the connection: whoever has gone needs no answer.
CHUNK = 1000


@dataclass(frozen=True, slots=True)
class Service:
    """Everything that requests of one process share."""

    current: CurrentModel
    limits: ServiceLimits
    metrics: Metrics
    slots: Slots
    log: AuditLog | None = None

    def entry(self, decided: DecidedPeople, client: str) -> dict[str, Any] | None:
        """Return what is to be logged, if there is a log."""
        return None if self.log is None else self.log.entry(decided, client=client)

    def note(self, decided: DecidedPeople, entry: dict[str, Any] | None) -> None:
        """Log and count decisions before they are answered; only the event loop does this."""
        if self.log is not None and entry is not None:
            try:
                self.log.append(entry)
            except OSError as error:
                logger.error("the log of decisions cannot be written: %s", error.strerror)
                raise Refusal(
                    HTTPStatus.SERVICE_UNAVAILABLE,
                    "the decision is not answered, because it could not be logged; retry later",
                ) from None
        self.metrics.decided(decided)


@dataclass(frozen=True, slots=True)
class PostedRequest:
    """A request whose body was not read yet."""

    headers: Headers
    receive: Receive
    client: str
    version: str | None = None  # the digest that the address demands


async def decide(service: Service, request: PostedRequest) -> bytes:
    """Decide one record, a list of them, or an Arrow stream."""
    kind = media_type(request.headers)
    if _is_short(service, request) and kind != ARROW:
        with service.slots.short():
            body = parse_json(await read_body(request.receive, service.limits))
            if isinstance(body, dict):
                return _one(service, body, request.client)
        async with service.slots.long():
            return await _in_thread(service, request, lambda: body)
    async with service.slots.long():
        content = await read_body(request.receive, service.limits)
        return await _in_thread(service, request, lambda: _parse(service, content, kind))


def _parse(service: Service, content: bytes, kind: bytes) -> Any:  # noqa: ANN401 - JSON
    if kind != ARROW:
        return parse_json(content)
    return records_of_arrow(content, service.current.served.known, service.limits)


def _is_short(service: Service, request: PostedRequest) -> bool:
    length = declared_length(request.headers, service.limits)
    return length is not None and length <= service.limits.small_bytes


def _one(service: Service, record: dict[str, Any], client: str) -> bytes:
    decided = decide_records(service.current.served, [record])
    service.note(decided, service.entry(decided, client))
    return orjson.dumps(decided.single())


async def _in_thread(service: Service, request: PostedRequest, parse: Callable[[], Any]) -> bytes:
    """Answer a long request outside the event loop, until its client has gone."""
    gone = asyncio.ensure_future(request.receive())
    try:
        answer = await asyncio.to_thread(_many, service, request.client, parse, gone.done)
    finally:
        gone.cancel()
    service.note(answer.decided, answer.entry)
    return answer.content


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer that is logged before it is sent."""

    content: bytes
    decided: DecidedPeople
    entry: dict[str, Any] | None


def _many(
    service: Service, client: str, parse: Callable[[], Any], gone: Callable[[], bool]
) -> Answer:
    body = parse()
    if not isinstance(body, dict | list):
        raise Refusal(
            HTTPStatus.BAD_REQUEST,
            f"invalid body: got {type(body).__name__}; expected a record (an object of columns) "
            "or a list of records",
        )
    records = [body] if isinstance(body, dict) else body
    check_number(len(records))
    decided = _in_chunks(service.current.served, records, gone)
    content = decided.many(len(records)) if records is body else decided.single()
    return Answer(orjson.dumps(content), decided, service.entry(decided, client))


def _in_chunks(
    served: Served, records: Sequence[object], gone: Callable[[], bool]
) -> DecidedPeople:
    parts: list[DecidedPeople] = []
    for start in range(0, len(records), CHUNK):
        if gone():
            raise ConnectionResetError
        part = decide_records(served, records[start : start + CHUNK])
        parts.append(part.moved(start))
    return DecidedPeople.joined(parts)


async def infer_many(service: Service, request: PostedRequest) -> bytes:
    """Decide the tensors of an Open Inference request."""
    media_type(request.headers)
    if _is_short(service, request):
        with service.slots.short():
            content = await read_body(request.receive, service.limits)
            answer = _infer(service, content, request)
    else:
        async with service.slots.long():
            content = await read_body(request.receive, service.limits)
            answer = await asyncio.to_thread(_infer, service, content, request)
    service.note(answer.decided, answer.entry)
    return answer.content


def _infer(service: Service, content: bytes, request: PostedRequest) -> Answer:
    served = service.current.served
    check_version(served, request.version)  # it may have changed while the body was read
    answer, decided = infer(served, parse_json(content))
    return Answer(orjson.dumps(answer), decided, service.entry(decided, request.client))


def check_version(served: Served, version: str | None) -> None:
    """Raise for a version of the model that is not served now."""
    if version is not None and version != served.digest:
        raise Refusal(
            HTTPStatus.NOT_FOUND,
            f"unknown version: got {version[:80]!r}; expected {served.digest!r}, which is served "
            "now",
        )


async def decide_counterparts(service: Service, request: PostedRequest) -> bytes:
    """Decide all counterparts of one person."""
    media_type(request.headers)
    declared_length(request.headers, service.limits)
    async with service.slots.long(exploring=True):
        body = parse_json(await read_body(request.receive, service.limits))
        answer = await asyncio.to_thread(what_if, service.current.served, body)
        return orjson.dumps(answer)


async def reload(service: Service, request: PostedRequest) -> bytes:
    """Open the model file again."""
    origin = request.headers.get(b"sec-fetch-site", b"none")
    if origin not in (b"none", b"same-origin"):
        raise Refusal(
            HTTPStatus.FORBIDDEN, "a page of another site asks for a reload; expected this service"
        )
    try:
        async with service.slots.long(exploring=True):
            await service.current.reload()
    except (FetaError, OSError) as error:
        path = service.current.path
        why = str(error).replace(str(path), path.name)  # folders are not a client's business
        raise Refusal(
            HTTPStatus.CONFLICT, f"the model was not reloaded, and the old one stays: {why}"
        ) from None
    return orjson.dumps({"model": service.current.served.digest})
