"""Metrics in the format of Prometheus; labels are known routes, statuses and outcomes only."""

import os
from dataclasses import dataclass, field
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

# Set for several processes: each writes its numbers into files of this folder.
FOLDER = "PROMETHEUS_MULTIPROC_DIR"

SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


@dataclass(slots=True)
class Metrics:
    """The metrics of one process."""

    registry: CollectorRegistry = field(default_factory=CollectorRegistry)
    children: dict[tuple[str, ...], Any] = field(default_factory=dict)
    requests: Counter = field(init=False)
    seconds: Histogram = field(init=False)
    people: Counter = field(init=False)
    models: Counter = field(init=False)
    loaded: Gauge = field(init=False)

    def __post_init__(self) -> None:
        registry = self.registry
        self.requests = Counter(
            "feta_requests", "Requests.", ["route", "status"], registry=registry
        )
        self.seconds = Histogram(
            "feta_request_seconds", "Time to answer.", ["route"], registry=registry, buckets=SECONDS
        )
        self.people = Counter(
            "feta_people", "People, by what they got.", ["outcome"], registry=registry
        )
        self.models = Counter(
            "feta_reloads", "Models loaded, by result.", ["result"], registry=registry
        )
        self.loaded = Gauge(
            "feta_model_loaded_seconds",
            "When the model was loaded.",
            registry=registry,
            multiprocess_mode="max",
        )

    def answered(self, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        text = str(status)
        self._child(self.requests, "requests", route, text).inc()
        self._child(self.seconds, "seconds", route).observe(seconds)

    def decided(self, counts: dict[str, int]) -> None:
        """Count people by outcome."""
        for text, count in counts.items():
            self._child(self.people, "people", text).inc(count)

    def _child(self, metric: Any, *key: str) -> Any:  # noqa: ANN401 - counter or histogram
        child = self.children.get(key)
        if child is None:
            child = self.children[key] = metric.labels(*key[1:])
        return child

    def text(self) -> bytes:
        """Return the metrics of all processes."""
        registry = self.registry
        if FOLDER in os.environ:
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]  # it has no types
        return bytes(generate_latest(registry))
