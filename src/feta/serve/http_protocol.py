"""HTTP with limits on the head of a request, which uvicorn's fast parser does not have."""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from feta.serve.limits import LIMITS

TOO_LARGE = b'{"error":"the head of the request is too large; expected at most 16 kB of headers"}'
TOO_SLOW = b'{"error":"the head of the request is too slow; expected all of it within 10 seconds"}'
CONTINUE = b"HTTP/1.1 100 "
NO_UPGRADE = (
    b'{"error":"no other protocol is spoken here: got an Upgrade or CONNECT; expected HTTP/1.1 '
    b"without it; of Java's HttpClient, use Version.HTTP_1_1\"}"
)


class JoinedWrites:
    """A transport that sends the head of an answer together with its body.

    uvicorn writes them separately, and each write would wake up the client.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self.transport, self.head = transport, b""

    def write(self, data: bytes) -> None:
        """Hold a head until the next write; write everything else."""
        if not self.head and data.startswith(b"HTTP/1.1 ") and not data.startswith(CONTINUE):
            self.head = data
        else:
            self.transport.write(self.head + data if self.head else data)
            self.head = b""

    def flush(self) -> None:
        """Write a head without a body."""
        if self.head:
            self.transport.write(self.head)
            self.head = b""

    def close(self) -> None:
        """Write what is held, and close."""
        self.flush()
        self.transport.close()

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - everything else of a transport
        return getattr(self.transport, name)


class LimitedHttp(HttpToolsProtocol):
    """A connection whose heads are short and arrive in time."""

    head_bytes = 0
    in_head = True
    ended = False  # a request, in the data that is being received
    timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn
        """Expect a head."""
        super().connection_made(JoinedWrites(transport))  # type: ignore[arg-type]  # its methods
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Expect nothing more."""
        self._cancel()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        """Expect the rest of a head."""
        super().on_message_begin()
        self._expect_head()

    def on_headers_complete(self) -> None:
        """Note that the head has ended."""
        self.in_head = False
        self._cancel()
        if self.transport.is_closing():  # refused, so no application may see it
            return
        if self.parser.should_upgrade():  # the parser skips the body, so nobody could answer it
            self._refuse(b"400 Bad Request", NO_UPGRADE)
        else:
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Note a part of a body, unless the request was refused."""
        if not self.transport.is_closing():
            super().on_body(body)

    def on_message_complete(self) -> None:
        """Note the end of a request, unless it was refused."""
        self.ended = True
        if not self.transport.is_closing():
            super().on_message_complete()

    def on_response_complete(self) -> None:
        """Send an answer without a body."""
        self.transport.flush()  # type: ignore[attr-defined]  # JoinedWrites
        super().on_response_complete()

    def data_received(self, data: bytes) -> None:
        """Refuse a head that is too large."""
        self.ended = False
        super().data_received(data)
        if self.in_head and not self.ended and self.transport is not None:
            self.head_bytes += len(data)
            if self.head_bytes > LIMITS.head_bytes:
                self._refuse(b"431 Request Header Fields Too Large", TOO_LARGE)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count the headers of a head that arrives in one piece."""
        self.head_bytes += len(name) + len(value) + 4
        if self.head_bytes > 2 * LIMITS.head_bytes:
            self._refuse(b"431 Request Header Fields Too Large", TOO_LARGE)
            return
        super().on_header(name, value)

    def _expect_head(self) -> None:
        self._cancel()
        self.in_head, self.head_bytes = True, 0
        self.timer = self.loop.call_later(LIMITS.head_seconds, self._end_slow_head)

    def _end_slow_head(self) -> None:
        if self.in_head and not self.transport.is_closing():
            self._refuse(b"408 Request Timeout", TOO_SLOW)

    def _cancel(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def _refuse(self, status: bytes, content: bytes) -> None:
        if self.transport.is_closing():
            return
        head = b"HTTP/1.1 %b\r\ncontent-type: application/json\r\ncontent-length: %d\r\n"
        head += b"connection: close\r\n\r\n"
        self.transport.write(head % (status, len(content)) + content)
        self.transport.close()
