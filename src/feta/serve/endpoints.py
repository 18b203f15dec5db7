"""What each address answers; all work is done by functions that know nothing of HTTP."""

import asyncio
import logging
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import orjson

from feta.errors import FetaError
from feta.serve.audit_log import AuditLog
from feta.serve.body import (
    ARROW,
    Headers,
    Receive,
    declared_length,
    media_type,
    parse_json,
    read_body,
    read_parts,
)
from feta.serve.decisions import decide_records
from feta.serve.helper import Helper
from feta.serve.inference import infer
from feta.serve.limits import ServiceLimits
from feta.serve.long_work import Answer, Kind
from feta.serve.metrics import Metrics
from feta.serve.refusal import Refusal
from feta.serve.reloading import CurrentModel
from feta.serve.served import Served
from feta.serve.slots import Slots

logger = logging.getLogger("feta.serve")


@dataclass(frozen=True, slots=True)
class Service:
    """Everything that requests of one process share."""

    current: CurrentModel
    limits: ServiceLimits
    metrics: Metrics
    slots: Slots
    helper: Helper
    log: AuditLog | None = None

    @property
    def log_key(self) -> bytes | None:
        """The key of the log, if there is one."""
        return None if self.log is None else self.log.key

    def noted(self, answer: Answer) -> bytes:
        """Log and count decisions before they are answered; only the event loop does this."""
        if self.log is not None and answer.entry is not None:
            try:
                self.log.append_entry(answer.entry)
            except OSError as error:
                logger.error("the log of decisions cannot be written: %s", error.strerror)
                raise Refusal(
                    HTTPStatus.SERVICE_UNAVAILABLE,
                    "the decision is not answered, because it could not be logged; retry later",
                ) from None
        self.metrics.decided(answer.counts)
        return answer.content


@dataclass(frozen=True, slots=True)
class PostedRequest:
    """A request whose body was not read yet."""

    headers: Headers
    receive: Receive
    client: str
    version: str | None = None  # the digest that the address demands


async def decide(service: Service, request: PostedRequest) -> bytes:
    """Decide one record, a list of them, or an Arrow stream."""
    arrow = media_type(request.headers) == ARROW
    kind = Kind.DECIDE_ARROW if arrow else Kind.DECIDE
    if _is_short(service, request) and not arrow:
        with service.slots.short():
            content = await read_body(request.receive, service.limits)
            body = parse_json(content)
            if isinstance(body, dict):
                return _one(service, body, request.client)
        async with service.slots.long():
            return await _by_helper(service, request, kind, [content])
    async with service.slots.long():
        parts = await read_parts(request.receive, service.limits)
        return await _by_helper(service, request, kind, parts)


def _is_short(service: Service, request: PostedRequest) -> bool:
    length = declared_length(request.headers, service.limits)
    return length is not None and length <= service.limits.small_bytes


def _one(service: Service, record: dict[str, Any], client: str) -> bytes:
    decided = decide_records(service.current.served, [record])
    service.noted(Answer.about(decided, None, client, service.log_key))  # also if it is refused
    return orjson.dumps(decided.single())


async def _by_helper(
    service: Service, request: PostedRequest, kind: Kind, parts: list[bytes]
) -> bytes:
    """Answer a long request in the helper process, unless its client goes before."""
    served = service.current.served
    check_version(served, request.version)  # it may have changed while the body was read
    gone = asyncio.ensure_future(request.receive())
    try:
        answer = await service.helper.ask(
            kind, served, parts, request.client, gone=gone, limits=service.limits
        )
    finally:
        gone.cancel()
    return service.noted(answer)


async def infer_many(service: Service, request: PostedRequest) -> bytes:
    """Decide the tensors of an Open Inference request."""
    media_type(request.headers)
    if _is_short(service, request):
        with service.slots.short():
            content = await read_body(request.receive, service.limits)
            served = service.current.served
            check_version(served, request.version)  # it may have changed meanwhile
            answer, decided = infer(served, parse_json(content))
        return service.noted(Answer.about(decided, answer, request.client, service.log_key))
    async with service.slots.long():
        parts = await read_parts(request.receive, service.limits)
        return await _by_helper(service, request, Kind.INFER, parts)


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
    return await _explore(service, request, Kind.WHAT_IF)


async def explain_one(service: Service, request: PostedRequest) -> bytes:
    """Return reasons for the decision about one person."""
    return await _explore(service, request, Kind.EXPLAIN)


async def _explore(service: Service, request: PostedRequest, kind: Kind) -> bytes:
    media_type(request.headers)
    declared_length(request.headers, service.limits)
    async with service.slots.long(exploring=True):
        parts = await read_parts(request.receive, service.limits)
        return await _by_helper(service, request, kind, parts)


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
