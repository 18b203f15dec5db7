"""The helper process: it answers long requests of one process of the service.

    python -m feta.serve.helper_program

It reads messages from its standard input and writes answers to its standard output. It ends when
its input ends, so it never outlives the service, and takes no other order to end.
"""

import io
import logging
import os
import signal
import sys
import threading
import traceback
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import BinaryIO

from feta.serve.frames import Header, frame, read_frame, write_frame
from feta.serve.limits import LIMITS
from feta.serve.long_work import Kind, Question, answer
from feta.serve.refusal import Refusal
from feta.serve.served import Served

# Batches give way to single requests, as far as the system knows of priorities.
NICENESS = 5


@dataclass(slots=True)
class HelperProgram:
    """The model that is served, and the requests that are worked on."""

    replies: BinaryIO
    served: Served | None = None
    log_key: bytes | None = None
    running: dict[int, threading.Event] = field(default_factory=dict)
    writing: threading.Lock = field(default_factory=threading.Lock)

    def run(self, requests: BinaryIO) -> None:
        """Answer requests until the service closes the pipe."""
        with ThreadPoolExecutor(LIMITS.running + LIMITS.exploring) as threads:
            while (message := read_frame(requests)) is not None:
                header, body = message
                if "model" in header:
                    self.served = Served.read(body, header["name"])
                    self.log_key = None if header["key"] is None else bytes.fromhex(header["key"])
                elif "cancel" in header:
                    self._cancel(header["cancel"])
                else:
                    self.running[header["id"]] = threading.Event()
                    threads.submit(self._answer, header, body, self.served)
            os._exit(0)  # nobody waits for the rest

    def _cancel(self, number: int) -> None:
        gone = self.running.get(number)
        if gone is not None:
            gone.set()

    def _answer(self, header: Header, body: bytes, served: Served | None) -> None:
        """Answer one request; the model is the one that was served when it arrived."""
        number, gone = header["id"], self.running[header["id"]]
        parts: list[bytes] = []
        reply: Header
        try:
            if served is None or served.digest != header["digest"]:
                raise LookupError("the request names another model")
            question = Question(Kind(header["kind"]), body, header["client"], self.log_key)
            done = answer(served, question, gone.is_set)
            reply = {
                "counts": done.counts,
                "length": len(done.content),
                "log": done.entry is not None,
            }
            parts = [done.content, done.entry or b""]
        except Refusal as refusal:
            reply = {"refused": refusal.status, "content": refusal.content}
        except ConnectionResetError:
            reply = {"gone": True}
        except Exception as error:
            # The message of an exception may contain values of a person, so it is not sent.
            where = "".join(traceback.format_tb(error.__traceback__))
            reply = {"failed": type(error).__name__, "where": where}
        del self.running[number]
        with self.writing:
            write_frame(self.replies, frame({"id": number, **reply}, parts))


def give_way() -> None:
    """Take a lower priority than the service, which may have a real-time one."""
    if hasattr(os, "sched_setscheduler") and os.sched_getscheduler(0) != os.SCHED_OTHER:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    if hasattr(os, "nice"):
        os.nice(NICENESS)


def main() -> None:
    """Answer requests on the standard streams."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the service ends this process
    replies = io.FileIO(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints is no answer
    logging.basicConfig(level=logging.WARNING)
    give_way()
    HelperProgram(replies).run(sys.stdin.buffer)


if __name__ == "__main__":
    main()
