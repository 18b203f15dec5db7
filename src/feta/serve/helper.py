"""The helper process of a process of the service, which answers its long requests.

Parsing and deciding a batch holds Python's lock for a millisecond and more at a time, so in the
same process it would delay single requests.
"""

import asyncio
import logging
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from http import HTTPStatus
from itertools import count
from queue import SimpleQueue
from typing import Any

from feta.serve.frames import Header, frame, read_frame, write_frame
from feta.serve.limits import ServiceLimits
from feta.serve.long_work import Answer, Kind
from feta.serve.refusal import Refusal
from feta.serve.served import Served

logger = logging.getLogger("feta.serve")

# -P: a file in the working directory must not replace a module.
COMMAND = (sys.executable, "-P", "-m", "feta.serve.helper_program")

# A helper that ends sooner than this is not started again at once.
SHORT_LIFE_SECONDS, PAUSE_SECONDS = 5.0, 1.0

# Time for a helper to end by itself when the service ends.
END_SECONDS = 2.0

Reply = tuple[Header, bytes]


class ErrorInside(Exception):
    """An error in the helper, by its type and place."""

    def __init__(self, kind: str, where: str) -> None:
        super().__init__(kind)
        self.kind, self.where = kind, where


@dataclass(slots=True)
class Channel:
    """One running helper: what is sent to it, and who waits for its answers."""

    process: "subprocess.Popen[bytes]"
    outgoing: "SimpleQueue[list[bytes] | None]" = field(default_factory=SimpleQueue)
    waiting: dict[int, "Future[Reply]"] = field(default_factory=dict)
    digest: str = ""  # of the model that was sent last

    def write(self) -> None:
        """Write what is sent, until the end; a helper that has died is noticed elsewhere."""
        assert self.process.stdin is not None
        try:
            while (parts := self.outgoing.get()) is not None:
                write_frame(self.process.stdin, parts)  # type: ignore[arg-type]  # it has no buffer
        except OSError:
            pass
        finally:
            self.process.stdin.close()


@dataclass(slots=True)
class Helper:
    """Starts the helper process, starts it again when it dies, and ends it."""

    current: Callable[[], Served]
    log_key: bytes | None = None
    command: tuple[str, ...] = COMMAND
    channel: Channel | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)
    ending: threading.Event = field(default_factory=threading.Event)
    started: threading.Event = field(default_factory=threading.Event)
    numbers: Any = field(default_factory=count)
    thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the process; requests may be sent at once."""
        self.ending.clear()
        self.started.clear()
        self.thread = threading.Thread(target=self._supervise, name="feta-helper", daemon=True)
        self.thread.start()
        self.started.wait()

    def stop(self) -> None:
        """End the process."""
        self.ending.set()
        with self.lock:
            channel = self.channel
        if channel is not None:
            channel.outgoing.put(None)
            try:
                channel.process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                channel.process.kill()
        if self.thread is not None:
            self.thread.join()

    async def ask(
        self,
        kind: Kind,
        served: Served,
        parts: list[bytes],
        client: str,
        *,
        gone: "asyncio.Future[Any]",
        limits: ServiceLimits,
    ) -> Answer:
        """Answer a long request; end a process that does not answer in time."""
        channel, number, future = self._send(kind, served, parts, client)
        waiting = asyncio.wrap_future(future)
        deadline = time.monotonic() + limits.long_seconds
        await asyncio.wait(
            {waiting, gone}, timeout=limits.long_seconds, return_when="FIRST_COMPLETED"
        )
        if not waiting.done() and gone.done():
            channel.outgoing.put(frame({"cancel": number}))
            # The place in the queue is free when the process is, not when the client has gone.
            await asyncio.wait({waiting}, timeout=max(0.0, deadline - time.monotonic()))
        if not waiting.done():
            logger.error(
                "a long request took %g seconds: its process is ended", limits.long_seconds
            )
            channel.process.kill()
            raise Refusal(
                HTTPStatus.SERVICE_UNAVAILABLE,
                f"the request took too long: got no answer within {limits.long_seconds:g} seconds; "
                "send fewer people per request",
            )
        return _answer_of(*waiting.result())

    def _send(
        self, kind: Kind, served: Served, parts: list[bytes], client: str
    ) -> tuple[Channel, int, "Future[Reply]"]:
        with self.lock:
            channel = self.channel
            if channel is None:
                raise _away("is not running")
            self._send_model(channel, served)
            number, future = next(self.numbers), Future[Reply]()
            future.set_running_or_notify_cancel()  # only an answer or a death ends it
            channel.waiting[number] = future
        header = {"id": number, "kind": kind, "digest": served.digest, "client": client}
        channel.outgoing.put(frame(header, parts))
        return channel, number, future

    def _send_model(self, channel: Channel, served: Served) -> None:
        """Send a model unless it is the one that was sent last."""
        if channel.digest != served.digest:
            key = None if self.log_key is None else self.log_key.hex()
            header = {"model": served.digest, "name": served.name, "key": key}
            channel.outgoing.put(frame(header, [served.content]))
            channel.digest = served.digest

    def _supervise(self) -> None:
        """Keep a process running until the end."""
        if hasattr(signal, "pthread_sigmask"):  # children inherit this: only the service ends them
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
        while not self.ending.is_set():
            began = time.monotonic()
            try:
                self._run_once()
            except OSError as error:
                logger.error("the process for long requests cannot be started: %s", error.strerror)
            except Exception as error:
                logger.error("an answer of the process is damaged: %s", type(error).__name__)
            self.started.set()
            if time.monotonic() - began < SHORT_LIFE_SECONDS:
                self.ending.wait(PAUSE_SECONDS)

    def _run_once(self) -> None:
        """Start a process, and pass on its answers until it ends."""
        process = subprocess.Popen(
            self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )
        channel = Channel(process)
        writer = threading.Thread(target=channel.write, name="feta-helper-writer", daemon=True)
        writer.start()
        self._send_model(channel, self.current())
        with self.lock:
            self.channel = channel
        self.started.set()
        if self.ending.is_set():  # `stop` may have seen no channel
            channel.outgoing.put(None)
        try:
            self._read(channel)
        finally:
            status = self._ended(channel)
            writer.join()
        if not self.ending.is_set():
            logger.error(
                "the process for long requests ended (status %d): it is started again", status
            )

    def _ended(self, channel: Channel) -> int:
        """End what is left of a process, and refuse the requests it worked on."""
        with self.lock:
            self.channel = None
            lost = list(channel.waiting.values())
        for future in lost:
            future.set_exception(_away("ended while it worked on the request"))
        channel.outgoing.put(None)
        channel.process.kill()  # it may have closed its output only
        assert channel.process.stdout is not None
        channel.process.stdout.close()
        return channel.process.wait()

    def _read(self, channel: Channel) -> None:
        assert channel.process.stdout is not None
        with open(channel.process.stdout.fileno(), "rb", closefd=False) as stream:
            while (reply := read_frame(stream)) is not None:
                with self.lock:
                    future = channel.waiting.pop(reply[0]["id"])
                future.set_result(reply)


def _answer_of(reply: Header, body: bytes) -> Answer:
    if "refused" in reply:
        refusal = Refusal(HTTPStatus(reply["refused"]), reply["content"].pop("error"))
        refusal.content |= reply["content"]
        raise refusal
    if "gone" in reply:
        raise ConnectionResetError
    if "failed" in reply:
        raise ErrorInside(reply["failed"], reply["where"])
    length = reply["length"]
    return Answer(body[:length], body[length:] if reply["log"] else None, reply["counts"])


def _away(what: str) -> Refusal:
    return Refusal(
        HTTPStatus.SERVICE_UNAVAILABLE,
        f"the process that answers lists and what-ifs {what}, and is started again; retry after "
        "a second",
    )
