"""What each address answers; all work is done by functions that know nothing of HTTP."""

import asyncio
from collections.abc import Sequence
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

    def note(self, decided: DecidedPeople, client: str) -> None:
        """Log and count decisions before they are answered."""
        if self.log is not None:
            self.log.record(decided, client=client)
        self.metrics.decided(decided)


@dataclass(frozen=True, slots=True)
class PostedRequest:
    """A request whose body was not read yet."""

    headers: Headers
    receive: Receive
    client: str


async def decide(service: Service, request: PostedRequest) -> bytes:
    """Decide one record, a list of them, or an Arrow stream."""
    kind = media_type(request.headers)
    if _is_short(service, request) and kind != ARROW:
        async with service.slots.short():
            body = parse_json(await read_body(request.receive, service.limits))
            if isinstance(body, dict):
                return _one(service, body, request.client)
        async with service.slots.long():
            return await _many(service, body, request)
    async with service.slots.long():
        content = await read_body(request.receive, service.limits)
        body = await asyncio.to_thread(_parse, content, kind, service.limits)
        if isinstance(body, dict):
            return _one(service, body, request.client)
        return await _many(service, body, request)


def _parse(content: bytes, kind: bytes, limits: ServiceLimits) -> Any:  # noqa: ANN401 - JSON
    return records_of_arrow(content, limits) if kind == ARROW else parse_json(content)


def _is_short(service: Service, request: PostedRequest) -> bool:
    length = declared_length(request.headers, service.limits)
    return length is not None and length <= service.limits.small_bytes


def _one(service: Service, record: dict[str, Any], client: str) -> bytes:
    decided = decide_records(service.current.served, [record])
    service.note(decided, client)
    return orjson.dumps(decided.single())


async def _many(service: Service, records: object, request: PostedRequest) -> bytes:
    served = service.current.served
    if not isinstance(records, list):
        raise Refusal(
            HTTPStatus.BAD_REQUEST,
            f"invalid body: got {type(records).__name__}; expected a record (an object of columns) "
            "or a list of records",
        )
    check_number(len(records))
    gone = asyncio.ensure_future(request.receive())
    try:
        decided = await _in_chunks(served, records, gone)
    finally:
        gone.cancel()
    service.note(decided, request.client)
    return await asyncio.to_thread(orjson.dumps, decided.many(len(records)))


async def _in_chunks(
    served: Served, records: Sequence[object], gone: "asyncio.Future[Any]"
) -> DecidedPeople:
    parts: list[DecidedPeople] = []
    for start in range(0, len(records), CHUNK):
        if gone.done():
            raise ConnectionResetError
        part = await asyncio.to_thread(decide_records, served, records[start : start + CHUNK])
        parts.append(part.moved(start))
    return DecidedPeople.joined(parts)


async def infer_many(service: Service, request: PostedRequest) -> bytes:
    """Decide the tensors of an Open Inference request."""
    media_type(request.headers)
    places = service.slots.short() if _is_short(service, request) else service.slots.long()
    async with places:
        body = parse_json(await read_body(request.receive, service.limits))
        answer, decided = await asyncio.to_thread(infer, service.current.served, body)
        service.note(decided, request.client)
        return orjson.dumps(answer)


async def decide_counterparts(service: Service, request: PostedRequest) -> bytes:
    """Decide all counterparts of one person."""
    media_type(request.headers)
    declared_length(request.headers, service.limits)
    async with service.slots.long():
        body = parse_json(await read_body(request.receive, service.limits))
        answer = await asyncio.to_thread(what_if, service.current.served, body)
        return orjson.dumps(answer)


async def reload(service: Service, request: PostedRequest) -> bytes:
    """Open the model file again."""
    del request
    try:
        await service.current.reload()
    except (FetaError, OSError) as error:
        raise Refusal(
            HTTPStatus.CONFLICT, f"the model was not reloaded, and the old one stays: {error}"
        ) from None
    return orjson.dumps({"model": service.current.served.digest})
