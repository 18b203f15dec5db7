"""Entry: where the command starts; an interruption is one even while modules are imported."""

import warnings

from feta.cli.leave import leave_at_once

INTERRUPTED = 130


def main() -> None:
    """Run the command line."""
    try:
        from feta.cli.app import main as run

        warnings.formatwarning = _formatted
        run()
    except KeyboardInterrupt:
        # The first one, or a second one while the first is handled.
        leave_at_once(INTERRUPTED)


def _formatted(
    message: Warning | str,
    category: type[Warning],  # noqa: ARG001 - the signature is the standard library's
    filename: str,  # noqa: ARG001
    lineno: int,  # noqa: ARG001
    line: str | None = None,  # noqa: ARG001
) -> str:
    """Format a warning as one line for a user, without a place in the source."""
    from feta.io.sanitize import plain

    return f"feta: warning: {plain(message)}\n"
