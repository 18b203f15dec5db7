"""`feta check`: runs the independent checker in a process of its own."""

import subprocess
from collections.abc import Sequence


def run_check(command: Sequence[str]) -> int:
    """Run the checker; its output and exit code are those of the command."""
    return subprocess.run(command, check=False).returncode
