"""One run of the command line: errors become messages and exit codes."""

import io
import os
import sys
from typing import TextIO

import typer

from feta.auditing.interruptible import is_computing
from feta.cli.app import app
from feta.cli.exit_code import ExitCode
from feta.cli.signals import exit_now, ignore_signals
from feta.errors import CertificateError, FetaError, ModelFailure
from feta.io.sanitize import plain, shortened
from feta.scorer.counted.timed_call import is_hanging


def main() -> None:
    """Run the command of this process and exit.

    Users see no traceback unless FETA_TRACEBACK is set.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # escape what the terminal cannot encode
            stream.reconfigure(errors="backslashreplace")
    code = run_command()
    if code == ExitCode.INTERRUPTED or is_computing() or is_hanging():
        exit_now(code)
    ignore_signals()
    sys.exit(code)


def run_command(arguments: list[str] | None = None) -> int:
    """Run a command, by default that of this process; return its exit code."""
    try:
        code = int(app(arguments, prog_name="feta", standalone_mode=False) or ExitCode.DONE)
        sys.stdout.flush()
    except typer.Exit as exited:
        return exited.exit_code
    except (KeyboardInterrupt, typer.Abort):
        _print_error("interrupted")
        return ExitCode.INTERRUPTED
    except (BrokenPipeError, SystemExit):
        # The reader of stdout or stderr closed it. Typer turns that into SystemExit(1), but exit
        # code 1 means a counterexample.
        _discard(sys.__stdout__, sys.__stderr__)
        return ExitCode.BROKEN_PIPE
    except CertificateError as error:
        return _report_internal(error)
    except ModelFailure as error:  # the answers of a counted model cannot be used
        _report_bad_input(error)
        return ExitCode.UNDECIDED
    except (FetaError, OSError, MemoryError, typer.TyperException) as error:
        return _report_bad_input(error)
    except Exception as error:
        return _report_internal(error)
    return code


def _report_bad_input(error: Exception) -> ExitCode:
    if len(sys.argv) == 1:  # without arguments the message is the help text
        _write_error(str(error))
        return ExitCode.BAD_INPUT
    _print_error(_describe(error))
    for line in getattr(error, "__notes__", []):  # a script to copy
        _write_error(f"    {plain(line)}")
    return ExitCode.BAD_INPUT


def _report_internal(error: Exception) -> ExitCode:
    if "FETA_TRACEBACK" in os.environ:
        raise error
    _print_error(
        f"internal error: {type(error).__name__}: {error}; FETA_TRACEBACK=1 shows the traceback"
    )
    return ExitCode.INTERNAL


def _describe(error: Exception) -> str:
    """Return one sentence about an error, for users."""
    if isinstance(error, typer.TyperException):
        context = getattr(error, "ctx", None)
        command = context.command_path if context is not None else "feta"
        return f"{error.format_message().rstrip('.')}; {command} --help lists all options"
    if isinstance(error, OSError):
        return f"{error.filename or 'a file'}: {error.strerror or error}"
    if isinstance(error, MemoryError):
        return "not enough memory for these files; check that they are the right files"
    return str(error)


def _print_error(message: str) -> None:
    _write_error(f"feta: {plain(shortened(message))}")


def _write_error(line: str) -> None:
    """Write a line to stderr; the exit code must not change if nobody can read it."""
    try:
        typer.echo(line, err=True)
    except BrokenPipeError:
        _discard(sys.__stderr__)


def _discard(*streams: TextIO | None) -> None:
    """Redirect closed streams to nowhere; otherwise the flush at exit fails and sets the code."""
    null = os.open(os.devnull, os.O_WRONLY)
    for stream in streams:
        if stream is not None:
            os.dup2(null, stream.fileno())
