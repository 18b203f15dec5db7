"""Hot reload: the file is looked at, and its model replaces the served one as a whole."""

import asyncio
import logging
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from feta.errors import FetaError
from feta.serve.file_signature import Signature, signature_of
from feta.serve.limits import ServiceLimits
from feta.serve.metrics import Metrics
from feta.serve.served import Served

logger = logging.getLogger("feta.serve")


@dataclass(slots=True)
class CurrentModel:
    """The model that is served now. Requests keep the one with which they started."""

    path: Path
    name: str
    served: Served
    metrics: Metrics
    signature: Signature | None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    @classmethod
    def load(cls, path: Path, name: str, metrics: Metrics) -> Self:
        """Open a file; how it looked before is noted, so that no change is missed."""
        signature = signature_of(path)
        served = Served.load(path, name)
        metrics.loaded.set(served.loaded)
        return cls(path, name, served, metrics, signature)

    async def reload(self) -> None:
        """Open the file again; on failure the served model stays, and the error is raised."""
        async with self.lock:
            self.signature = signature_of(self.path)
            try:
                served = await asyncio.to_thread(Served.load, self.path, self.name)
            except Exception:
                self.metrics.models.labels("failed").inc()
                raise
            self.served = served
            self.metrics.models.labels("loaded").inc()
            self.metrics.loaded.set(served.loaded)
            logger.info("loaded model %s", served.digest)

    async def watch(self, limits: ServiceLimits) -> None:
        """Reload whenever the file changes, until cancelled; every process does this."""
        while True:
            await asyncio.sleep(limits.reload_seconds)
            signature = signature_of(self.path)
            if signature is None or signature == self.signature:
                continue
            try:
                await self.reload()
            except (FetaError, OSError) as error:
                logger.warning("the model was not reloaded: %s", error)
            except Exception:
                logger.exception("the model was not reloaded")
