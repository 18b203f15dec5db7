"""Leave: ends the process after an interruption, whatever other threads still compute.

A thread in compiled code that outlives the interpreter aborts the process (SIGABRT), and a signal
during the interpreter's own end ends it by that signal. So an interrupted process listens to no further
signal, and does not wait for the interpreter to end.
"""

import contextlib
import os
import signal
import sys
import threading
from typing import NoReturn


def stop_listening() -> None:
    """Ignore further interruptions; one that arrives just now is ignored, too."""
    if threading.current_thread() is not threading.main_thread():
        return
    for number in (signal.SIGINT, signal.SIGTERM):
        while signal.getsignal(number) is not signal.SIG_IGN:
            with contextlib.suppress(KeyboardInterrupt):
                signal.signal(number, signal.SIG_IGN)


def leave_at_once(code: int) -> NoReturn:
    """Write what is buffered, and end the process with this exit code."""
    stop_listening()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # nobody reads it any more
            stream.flush()
    os._exit(code)
