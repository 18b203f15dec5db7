"""Exit codes of all commands, for scripts."""

from enum import IntEnum


class ExitCode(IntEnum):
    """How a command ended."""

    DONE = 0
    COUNTEREXAMPLE = 1
    BAD_INPUT = 2
    UNDECIDED = 3
    INTERNAL = 4
    INTERRUPTED = 130  # as in a shell: 128 + SIGINT
    BROKEN_PIPE = 141  # as in a shell: 128 + SIGPIPE
