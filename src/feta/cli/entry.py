"""Entry point of the command `feta`.

An interruption during the imports ends the process like one during the command.
"""

import warnings

from feta.cli.exit_code import ExitCode
from feta.cli.signals import exit_now


def main() -> None:
    """Run the command line."""
    try:
        from feta.cli.run_command import main as run

        warnings.formatwarning = _format_warning
        run()
    except KeyboardInterrupt:
        # During the imports, or while an earlier interruption is handled.
        exit_now(ExitCode.INTERRUPTED)


def _format_warning(
    message: Warning | str,
    category: type[Warning],  # noqa: ARG001 - the signature is the standard library's
    filename: str,  # noqa: ARG001
    lineno: int,  # noqa: ARG001
    line: str | None = None,  # noqa: ARG001
) -> str:
    """Format a warning as one line, without its place in the source."""
    from feta.io.sanitize import plain

    return f"feta: warning: {plain(message)}\n"
