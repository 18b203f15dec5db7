"""The processes of the service: one, or a supervisor with several workers."""

import json
import logging
import os
import signal
import socket
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.supervisors import Multiprocess

from feta.serve.application import Guard, application
from feta.serve.audit_log import AuditLog
from feta.serve.endpoints import Service
from feta.serve.helper import Helper
from feta.serve.http_protocol import LimitedHttp
from feta.serve.keys import KeyFile
from feta.serve.limits import LIMITS
from feta.serve.metrics import FOLDER, Metrics
from feta.serve.reloading import CurrentModel
from feta.serve.served import Served
from feta.serve.slots import Slots

# The options of the service, for worker processes.
OPTIONS = "FETA_SERVE"

logger = logging.getLogger("feta.serve")

# Seconds after which a long request lets the event loop run; Python's default is fifty times as
# long. A short request waits for this several times while a batch is decided.
SWITCH_SECONDS = 0.0001


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """What is served, where, and by how many processes."""

    model: str
    name: str
    host: str = "127.0.0.1"
    port: int = 8080
    jobs: int = 1
    key_file: str | None = None
    log: str | None = None


def build(options: ServeOptions) -> Guard:
    """Return the application of one process."""
    metrics = Metrics()
    current = CurrentModel.load(Path(options.model), options.name, metrics)
    log = None if options.log is None else AuditLog.open(Path(options.log))
    keys = None if options.key_file is None else KeyFile.read(Path(options.key_file))
    helper = Helper(lambda: current.served, None if log is None else log.key)
    return application(Service(current, LIMITS, metrics, Slots(LIMITS), helper, log), keys)


def worker() -> Guard:
    """Return the application of a worker process, whose options are in the environment."""
    logging.basicConfig(level=logging.WARNING)
    sys.setswitchinterval(SWITCH_SECONDS)
    return build(ServeOptions(**json.loads(os.environ[OPTIONS])))


def run_server(options: ServeOptions, announce: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT; requests in progress are answered before the end."""
    if options.key_file is not None:
        KeyFile.read(Path(options.key_file))  # a bad file is noticed before the port is opened
    with ExitStack() as stack:
        app: Any = build(options) if options.jobs == 1 else f"{__name__}:worker"
        listener = stack.enter_context(_listen(options.host, options.port))
        config = _config(options, app)
        host = f"[{options.host}]" if ":" in options.host else options.host
        announce(f"http://{host}:{listener.getsockname()[1]}")
        previous = [(number, signal.signal(number, _ignore)) for number in _SIGNALS]
        stack.callback(lambda: [signal.signal(number, before) for number, before in previous])
        if options.jobs == 1:
            sys.setswitchinterval(SWITCH_SECONDS)
            uvicorn.Server(config).run(sockets=[listener])
            return
        Served.load(Path(options.model), options.name)  # workers would fail one after another
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="feta-metrics-"))
        os.environ[FOLDER], os.environ[OPTIONS] = folder, json.dumps(asdict(options))
        stack.callback(lambda: [os.environ.pop(name, None) for name in (FOLDER, OPTIONS)])
        Multiprocess(config, sockets=[listener]).run()


_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def _ignore(number: int, frame: object) -> None:
    """Do nothing: uvicorn raises a signal again after it has ended gracefully."""
    del number, frame


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.create_server((host, port), family=family, backlog=2048)
    listener.set_inheritable(True)
    return listener


def _config(options: ServeOptions, app: Any) -> uvicorn.Config:  # noqa: ANN401 - an application or its name
    return uvicorn.Config(
        app,
        factory=options.jobs > 1,
        workers=options.jobs,
        http=LimitedHttp,
        ws="none",
        lifespan="on",
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=LIMITS.drain_seconds,
    )
