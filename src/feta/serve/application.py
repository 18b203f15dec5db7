"""The ASGI application: routes, API keys, headers of all answers, and metrics of all requests."""

import asyncio
import logging
import time
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from importlib.resources import files
from typing import Any

import orjson
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from feta.serve.body import JSON, Headers, Message, Receive, Scope, Send
from feta.serve.describe import card_of, schema_of
from feta.serve.endpoints import (
    PostedRequest,
    Service,
    check_version,
    decide,
    decide_counterparts,
    explain_one,
    infer_many,
    reload,
)
from feta.serve.helper import ErrorInside
from feta.serve.inference import metadata_of
from feta.serve.keys import KeyFile, presented_key
from feta.serve.openapi import openapi_of
from feta.serve.refusal import Refusal

logger = logging.getLogger("feta.serve")

Posted = Callable[[Service, PostedRequest], Awaitable[bytes]]
Got = Callable[[Service], bytes]

CSP_OF_DATA = b"default-src 'none'; frame-ancestors 'none'"
CSP_OF_PAGE = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    b"img-src 'self' data:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
# Headers of all answers; each one costs a microsecond.
SECURITY_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
]
HEADERS_OF_DATA = [(b"content-security-policy", CSP_OF_DATA), *SECURITY_HEADERS]
# A page needs more of them than data, which no browser displays as a page.
HEADERS_OF_PAGE = [
    (b"content-security-policy", CSP_OF_PAGE),
    *SECURITY_HEADERS,
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
]

# Headers of some refusals. After a timeout, the rest of the body would be a next request.
OF_STATUS: dict[int, list[tuple[bytes, bytes]]] = {
    HTTPStatus.SERVICE_UNAVAILABLE: [(b"retry-after", b"1")],
    HTTPStatus.REQUEST_TIMEOUT: [(b"connection", b"close")],
    HTTPStatus.UNAUTHORIZED: [(b"www-authenticate", b"Bearer")],
}

# Addresses that need no API key: they contain nothing about the model or people.
OPEN = {"/", "/page.js", "/page.css", "/health/live", "/health/ready", "/v2/health/live",
        "/v2/health/ready"}  # fmt: skip

INTERNAL = orjson.dumps({"error": "internal error; the log of the service names it"})

PAGE = {
    "/": ("page.html", b"text/html; charset=utf-8"),
    "/page.js": ("page.js", b"text/javascript; charset=utf-8"),
    "/page.css": ("page.css", b"text/css; charset=utf-8"),
}


def application(service: Service, keys: KeyFile | None = None) -> "Guard":
    """Return the application of one process."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        await asyncio.to_thread(service.helper.start)
        watchers = [asyncio.create_task(service.current.watch(service.limits))]
        if keys is not None:
            watchers.append(asyncio.create_task(keys.watch(service.limits)))
        try:
            yield
        finally:
            for watcher in watchers:
                watcher.cancel()
            await asyncio.gather(*watchers, return_exceptions=True)
            await asyncio.to_thread(service.helper.stop)
            if service.log is not None:
                service.log.close()

    routes = _routes(service)
    handlers: dict[Any, Any] = {HTTPException: _unknown_route, Exception: _internal_error}
    app = Starlette(routes=routes, exception_handlers=handlers, lifespan=lifespan)
    app.router.redirect_slashes = False  # a redirect would name the host of the request
    direct = PostEndpoint(service, decide)
    return Guard(app, service, keys, frozenset(route.path for route in routes), direct)


def _routes(service: Service) -> list[Route]:
    name = service.current.name
    one = f"/v2/models/{name}"
    posts: dict[str, Posted] = {
        "/v1/decide": decide,
        "/v1/whatif": decide_counterparts,
        "/v1/explain": explain_one,
        "/v1/reload": reload,
        f"{one}/infer": infer_many,
        f"{one}/versions/{{version}}/infer": infer_many,
    }
    gets: dict[str, Got] = {
        "/v1/schema": lambda service: orjson.dumps(schema_of(service.current.served)),
        "/v1/card": lambda service: orjson.dumps(card_of(service.current.served)),
        "/openapi.json": lambda service: orjson.dumps(openapi_of(service.current.served)),
        "/health/live": lambda _: orjson.dumps({"live": True}),
        "/health/ready": lambda _: orjson.dumps({"ready": True}),
        "/v2": lambda _: orjson.dumps({"name": "feta", "version": "2", "extensions": []}),
        "/v2/health/live": lambda _: orjson.dumps({"live": True}),
        "/v2/health/ready": lambda _: orjson.dumps({"ready": True}),
        one: lambda service: orjson.dumps(metadata_of(service.current.served)),
        f"{one}/ready": lambda _: orjson.dumps({"name": name, "ready": True}),
        f"{one}/versions/{{version}}": lambda service: orjson.dumps(
            metadata_of(service.current.served)
        ),
        f"{one}/versions/{{version}}/ready": lambda _: orjson.dumps({"name": name, "ready": True}),
    }
    routes = [
        Route(path, PostEndpoint(service, post), methods=["POST"]) for path, post in posts.items()
    ]
    routes += [
        Route(path, GetEndpoint(service, get), methods=["GET"]) for path, get in gets.items()
    ]
    metrics = GetEndpoint(
        service, lambda service: service.metrics.text(), b"text/plain; version=0.0.4"
    )
    routes.append(Route("/metrics", metrics, methods=["GET"]))
    for path, (file, kind) in PAGE.items():
        content = files("feta.serve").joinpath("page", file).read_bytes()
        routes.append(Route(path, StaticEndpoint(content, kind), methods=["GET"]))
    return routes


@dataclass(frozen=True, slots=True)
class PostEndpoint:
    """An address that reads a body."""

    service: Service
    answer: Posted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        state, version = scope["state"], _version(scope)
        request = PostedRequest(state["headers"], receive, state["client"], version)
        try:
            check_version(self.service.current.served, version)
            content = await self.answer(self.service, request)
        except Refusal as refusal:
            await refuse(send, refusal)
        else:
            await respond(send, HTTPStatus.OK, content)


@dataclass(frozen=True, slots=True)
class GetEndpoint:
    """An address that describes something."""

    service: Service
    answer: Got
    kind: bytes = JSON

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        del receive
        try:
            check_version(self.service.current.served, _version(scope))
            content = self.answer(self.service)
        except Refusal as refusal:
            await refuse(send, refusal)
        else:
            head = scope["method"] == "HEAD"
            await respond(send, HTTPStatus.OK, content, kind=self.kind, head=head)


@dataclass(frozen=True, slots=True)
class StaticEndpoint:
    """A file of the page."""

    content: bytes
    kind: bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        del receive
        head = scope["method"] == "HEAD"
        await respond(
            send, HTTPStatus.OK, self.content, kind=self.kind, security=HEADERS_OF_PAGE, head=head
        )


def _version(scope: Scope) -> str | None:
    """Return the version of the model that an address demands."""
    version: str | None = scope.get("path_params", {}).get("version")
    return version


async def respond(
    send: Send,
    status: int,
    content: bytes,
    *,
    kind: bytes = JSON,
    security: Sequence[tuple[bytes, bytes]] = HEADERS_OF_DATA,
    head: bool = False,
) -> None:
    """Send one complete answer."""
    headers = [
        (b"content-type", kind),
        (b"content-length", b"%d" % len(content)),
        *security,
        *OF_STATUS.get(status, ()),
    ]
    await send({"type": "http.response.start", "status": int(status), "headers": headers})
    await send({"type": "http.response.body", "body": b"" if head else content})


async def refuse(send: Send, refusal: Refusal) -> None:
    """Send why a request is not answered."""
    await respond(send, refusal.status, orjson.dumps(refusal.content))


async def _unknown_route(request: Request, error: Exception) -> Response:
    """Answer an unknown address or method in words."""
    assert isinstance(error, HTTPException)
    path = request.scope["path"][:200]  # `request.url` would parse the Host header
    words = {
        HTTPStatus.NOT_FOUND: f"unknown address: got {path!r}; /openapi.json lists all",
        HTTPStatus.METHOD_NOT_ALLOWED: f"wrong method: got {request.method[:20]} for {path!r}",
    }
    status = HTTPStatus(error.status_code)
    content = orjson.dumps({"error": words.get(status, status.phrase)})
    headers = dict(error.headers or {}) | {
        name.decode(): value.decode() for name, value in HEADERS_OF_DATA
    }
    return Response(content, status, headers, "application/json")


async def _internal_error(request: Request, error: Exception) -> Response:
    """Answer without a word about what went wrong inside; the log of the service names it."""
    del request, error
    return Response(INTERNAL, HTTPStatus.INTERNAL_SERVER_ERROR, media_type="application/json")


@dataclass(slots=True)
class Guard:
    """What every request passes: API keys, refusals in words, and metrics."""

    app: Starlette
    service: Service
    keys: KeyFile | None
    known: frozenset[str]
    direct: PostEndpoint  # of /v1/decide, the address that has to be fast

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; nothing that goes wrong inside is shown outside."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started, status = time.perf_counter(), 0

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._answer(scope, receive, noting)
        except Refusal as refusal:
            await refuse(noting, refusal)
        except ConnectionResetError:  # nobody waits for an answer
            status = 499
        except ErrorInside as error:
            logger.error("internal error: %s in\n%s", error.kind, error.where)
            await respond(noting, HTTPStatus.INTERNAL_SERVER_ERROR, INTERNAL)
        except Exception as error:
            # The message of an exception may contain values of a person, so it is not logged.
            where = "".join(traceback.format_tb(error.__traceback__))
            logger.error("internal error: %s in\n%s", type(error).__name__, where)
            if not status:  # otherwise _internal_error has answered
                await respond(noting, HTTPStatus.INTERNAL_SERVER_ERROR, INTERNAL)
        path = scope["path"]
        route = path if path in self.known else "(other)"
        self.service.metrics.answered(route, status, time.perf_counter() - started)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers: Headers = dict(scope["headers"])
        client = ""
        if self.keys is not None and scope["path"] not in OPEN:
            name = self.keys.current.client(presented_key(headers))
            if name is None:
                raise Refusal(
                    HTTPStatus.UNAUTHORIZED,
                    "unknown API key: expected `Authorization: Bearer KEY` or `X-API-Key: KEY`",
                )
            client = name
        scope.setdefault("state", {}).update(headers=headers, client=client)
        hot = scope["method"] == "POST" and scope["path"] == "/v1/decide"
        await (self.direct if hot else self.app)(scope, receive, send)
