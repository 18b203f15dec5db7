"""`feta serve`: fair decisions over HTTP."""

import re
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.text import Text

from feta.cli.exit_code import ExitCode
from feta.cli.notices import notice
from feta.errors import MissingExtra, SchemaError
from feta.io.sanitize import plain

# The name of the model is part of addresses.
NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")

LOOPBACK = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True, slots=True)
class ServeRequest:
    """The options of `feta serve`."""

    model: Path
    host: str
    port: int
    jobs: int
    name: str | None
    key_file: Path | None
    log: Path | None


def run_serve(request: ServeRequest) -> ExitCode:
    """Serve until the process is asked to end."""
    try:
        from feta.serve.server import ServeOptions, run_server
    except ImportError as error:
        raise MissingExtra(error.name or "starlette", "serve") from error
    if request.host not in LOOPBACK and request.key_file is None:
        notice(
            f"warning: other machines may reach {request.host}, and no API key is needed; pass "
            "--key-file, or put a proxy in front"
        )
    options = ServeOptions(
        str(request.model),
        _name(request),
        request.host,
        request.port,
        request.jobs,
        None if request.key_file is None else str(request.key_file),
        None if request.log is None else str(request.log),
    )
    console = Console(soft_wrap=True)
    name = plain(request.model.name)
    processes = "1 process" if request.jobs == 1 else f"{request.jobs} processes"
    run_server(
        options,
        lambda url: console.print(Text(f"Serving {name} on {url} with {processes}.")),
    )
    return ExitCode.DONE


def _name(request: ServeRequest) -> str:
    name = request.name or re.sub(r"[^A-Za-z0-9_.-]", "_", request.model.stem) or "model"
    if not NAME.fullmatch(name):
        raise SchemaError(
            f"invalid --name: got {name!r}; expected letters, digits, '_', '.' or '-', at most 64"
        )
    return name
