"""Entry: where the command starts; an interruption is one even while modules are imported."""

import sys


def main() -> None:
    """Run the command line."""
    try:
        from feta.cli.app import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(130)
