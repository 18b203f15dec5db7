"""Exit codes: what a script can rely on."""

from enum import IntEnum


class ExitCode(IntEnum):
    """How a command ended."""

    DONE = 0
    COUNTEREXAMPLE = 1
    BAD_INPUT = 2
    UNDECIDED = 3
    INTERNAL = 4
    INTERRUPTED = 130
    BROKEN_PIPE = 141  # as a shell has it: 128 + SIGPIPE
