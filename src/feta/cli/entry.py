"""Entry: where the command starts; an interruption is one even while modules are imported."""

from feta.cli.leave import leave_at_once

INTERRUPTED = 130


def main() -> None:
    """Run the command line."""
    try:
        from feta.cli.app import main as run

        run()
    except KeyboardInterrupt:
        # The first one, or a second one while the first is handled.
        leave_at_once(INTERRUPTED)
