"""Limits of the service: what it refuses before it does any work."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ServiceLimits:
    """Sizes, numbers and times; a request beyond them is refused in words."""

    body_bytes: int = 4 * 2**20
    people: int = 10_000  # per request
    counterparts: int = 100_000  # of one person in /v1/whatif
    small_bytes: int = 8 * 2**10  # longer bodies need one of the slots
    running: int = 1  # batches that are worked on; more would delay short requests
    exploring: int = 1  # what-ifs and reloads that are worked on
    waiting: int = 8  # long requests that wait for a slot
    open_requests: int = 256  # short requests in progress
    long_seconds: float = 60.0  # until a process that does not answer is ended
    body_seconds: float = 10.0
    head_seconds: float = 10.0
    head_bytes: int = 16 * 2**10
    drain_seconds: int = 10
    reload_seconds: float = 1.0  # how often the model file is looked at


LIMITS = ServiceLimits()
