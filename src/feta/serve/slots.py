"""Admission: who may use the processor, decided before a body is read."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus

from feta.serve.limits import ServiceLimits
from feta.serve.refusal import Refusal


@dataclass(slots=True)
class Slots:
    """The places for requests of one process: a few long ones, many short ones."""

    limits: ServiceLimits
    running: asyncio.Semaphore = field(init=False)
    exploring: asyncio.Semaphore = field(init=False)
    long_requests: int = 0
    short_requests: int = 0

    def __post_init__(self) -> None:
        self.running = asyncio.Semaphore(self.limits.running)
        self.exploring = asyncio.Semaphore(self.limits.exploring)

    @contextmanager
    def short(self) -> Iterator[None]:
        """Count a short request; raise if too many are in progress."""
        if self.short_requests >= self.limits.open_requests:
            raise _busy(f"{self.short_requests} requests in progress")
        self.short_requests += 1
        try:
            yield
        finally:
            self.short_requests -= 1

    @asynccontextmanager
    async def long(self, *, exploring: bool = False) -> AsyncIterator[None]:
        """Wait for a slot; raise at once if too many requests wait already.

        What-ifs may take seconds, so they do not wait for batches, nor batches for them.
        """
        limits = self.limits
        if self.long_requests >= limits.running + limits.exploring + limits.waiting:
            raise _busy(f"{self.long_requests} long requests in progress")
        self.long_requests += 1
        try:
            async with self.exploring if exploring else self.running:
                yield
        finally:
            self.long_requests -= 1


def _busy(got: str) -> Refusal:
    return Refusal(
        HTTPStatus.SERVICE_UNAVAILABLE,
        f"the service is busy: got {got}; expected fewer; retry after a second",
    )
