"""App: the command line's door; it turns errors into messages and exit codes."""

import os
import sys
from importlib.metadata import version
from typing import Annotated

import typer

from feta.cli.exit_code import ExitCode
from feta.errors import FetaError

app = typer.Typer(
    name="feta",
    help="Is there anybody whose decision would change if only their age, race or sex were different?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode=None,
)


def _version(shown: bool) -> None:
    if shown:
        typer.echo(f"feta {version('feta-fair')}")
        raise typer.Exit


@app.callback()
def options(
    _shown: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Verify and enforce individual fairness of neural networks."""


@app.command()
def demo(
    seed: Annotated[int, typer.Option(help="Seed of the training.")] = 0,
) -> None:
    """The whole story on the bundled German credit data."""
    from feta.cli.demo import run_demo  # noqa: PLC0415 - pandas and scikit-learn are slow to import

    run_demo(seed=seed)


def main() -> None:
    """Run a command; no traceback reaches a user, unless FETA_TRACEBACK is set."""
    try:
        sys.exit(app(standalone_mode=False) or ExitCode.DONE)
    except typer.Exit as done:
        sys.exit(done.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        _complain("interrupted")
        sys.exit(ExitCode.INTERRUPTED)
    except typer.TyperException as error:
        _complain(f"{error.format_message()} (feta --help lists the commands)")
        sys.exit(ExitCode.BAD_INPUT)
    except FetaError as error:
        _complain(str(error))
        sys.exit(ExitCode.BAD_INPUT)
    except Exception as error:
        if "FETA_TRACEBACK" in os.environ:
            raise
        _complain(f"internal error: {type(error).__name__}: {error}; FETA_TRACEBACK=1 shows where")
        sys.exit(ExitCode.INTERNAL)


def _complain(message: str) -> None:
    typer.echo(f"feta: {message}", err=True)
