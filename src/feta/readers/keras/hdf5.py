"""HDF5: the parts of a Keras file that only the HDF5 library can parse, parsed in another process.

A damaged file can crash that library, and the process with it. The answer is checked like any file
of unknown origin: nothing in it is trusted, and nothing is unpickled.
"""

import importlib.util
import json
import math
import os
import re
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self

import numpy as np

from feta.arrays import Array
from feta.errors import MissingExtra, NetworkError
from feta.io.read_bytes import LARGEST_FILE

PROGRAM = Path(__file__).with_name("hdf5_program.py")

# Seconds that one file may take, of the processor's time (an honest file of the largest size takes
# about one) and by the clock, as some damaged files are read in a circle.
PROCESSOR_SECONDS = 10
SECONDS = 60
# Seconds beyond those after which the whole program is ended from outside.
GRACE = 10
# Memory for one file: its bytes, its arrays, and a copy of each while they are sent.
MEMORY = 8 * LARGEST_FILE
# An answer holds the arrays and, in JSON, the description of the layers.
LARGEST_ANSWER = 2 * LARGEST_FILE
MAX_DIMENSIONS = 32

# The environment of the program: one thread, and no plugins of the HDF5 library.
SETTINGS = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "HDF5_PLUGIN_PRELOAD": "::"}

REMEDY = "save it again: model.save('model.keras')"
REFUSALS = {
    "weights only": "the file must hold the whole model, not its weights only: model.save('model.keras')",
    "absent": f"the file must hold {{detail!r}}, but does not; {REMEDY}",
    "link": "the file must hold {detail!r} itself, not a link to it",
    "elsewhere": "the file must hold its arrays itself, not in other files",
    "numbers": "the array {detail!r} must hold plain numbers of moderate size",
    "memory": f"the file must be parsed in {MEMORY // 2**20} MB, but needs more; it may be damaged: {REMEDY}",
    "time": f"the file must be parsed within {PROCESSOR_SECONDS} s, but takes longer; it may be damaged: {REMEDY}",
    "crash": f"the file is damaged: the HDF5 library crashed on it (exit status {{detail}}); {REMEDY}",
    "damaged": f"the file must be a whole .keras or .h5 model as Keras writes it, but is not ({{detail}}); {REMEDY}",
}


@dataclass(frozen=True, slots=True, eq=False)
class Hdf5Group:
    """The arrays of one layer, its folder in the file, and its name where the file has it."""

    folder: str
    name: str | None
    arrays: tuple[Array, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Hdf5Content:
    """What an HDF5 file of Keras holds; a weights file has neither description nor version."""

    config: str
    version: str
    groups: tuple[Hdf5Group, ...]


def parse_hdf5(content: bytes, *, whole: bool) -> Hdf5Content:
    """Parse the bytes of a file: a whole model, or the weights within a .keras file."""
    with Hdf5Program() as program:
        return program.parse(content, whole=whole)


class Hdf5Program:
    """A Python process that parses files, each in a fork of its own where the system has forks.

    It is a plain subprocess, so that it works in notebooks and in daemonic workers.
    """

    def __init__(self, *, processor_seconds: int = PROCESSOR_SECONDS) -> None:
        if not _installed():
            raise MissingExtra("h5py", "keras")
        if not sys.executable:
            raise NetworkError(
                "HDF5 files are parsed by a separate Python, but this one does not know its own path; run FETA with a regular Python"
            )
        self.process = subprocess.Popen(
            [sys.executable, "-I", str(PROGRAM)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=os.environ | SETTINGS,
            start_new_session=True,
        )
        start = {
            "path": [entry for entry in sys.path if Path(entry).is_absolute()],
            "largest": LARGEST_FILE,
            "memory": MEMORY,
            "processor_seconds": processor_seconds,
            "seconds": SECONDS,
        }
        with suppress(OSError):  # a program that cannot be started shows when it is asked
            self._stdin.write(_block(json.dumps(start).encode()))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def alive(self) -> bool:
        """Whether it can take another file."""
        return self.process.poll() is None

    @property
    def _stdin(self) -> IO[bytes]:
        assert self.process.stdin is not None
        return self.process.stdin

    def parse(self, content: bytes, *, whole: bool) -> Hdf5Content:
        """Parse one file."""
        timer = threading.Timer(SECONDS + GRACE, self._kill)
        timer.start()
        try:
            with suppress(OSError):  # it has ended, which the missing answer shows
                self._stdin.write((b"M" if whole else b"W") + _block(content))
                self._stdin.flush()
            answer = self._answer()
        finally:
            timer.cancel()
        return _content(answer, whole=whole)

    def _answer(self) -> bytes:
        assert self.process.stdout is not None
        length = int.from_bytes(self.process.stdout.read(8), "little")
        answer = self.process.stdout.read(length) if length <= LARGEST_ANSWER else b""
        if not answer or len(answer) != length:
            self._kill()
            raise _refusal("crash", str(self.process.wait()))
        return answer

    def _kill(self) -> None:
        with suppress(OSError):
            if hasattr(os, "killpg"):
                os.killpg(self.process.pid, signal.SIGKILL)
            else:
                self.process.kill()

    def close(self) -> None:
        """End it."""
        self._kill()
        for pipe in (self.process.stdin, self.process.stdout):
            with suppress(OSError):
                assert pipe is not None
                pipe.close()
        self.process.wait()


def _installed() -> bool:
    """Look for h5py without importing it."""
    try:
        return importlib.util.find_spec("h5py") is not None
    except ValueError:  # what says that it must not be imported
        return False


def _block(content: bytes) -> bytes:
    return len(content).to_bytes(8, "little") + content


def _refusal(code: str, detail: str = "") -> NetworkError:
    return NetworkError(REFUSALS[code].format(detail=detail))


def _content(answer: bytes, *, whole: bool) -> Hdf5Content:
    """Check an answer in full before anything of it is used."""
    length = int.from_bytes(answer[:8], "little")
    header, data = answer[8 : 8 + length], answer[8 + length :]
    try:
        told = json.loads(header)
        if told.get("error") == "missing":
            raise _missing(str(told.get("detail")))
        if told.get("error") in REFUSALS:
            raise _refusal(told["error"], str(told.get("detail", "")))
        config, version = (told["config"], told["version"]) if whole else ("", "")
        if not isinstance(config, str) or not isinstance(version, str):
            raise ValueError("texts")
        groups, rest = [], memoryview(data)
        for folder, name, shown in told["groups"]:
            arrays = []
            for kind, shape in shown:
                array, rest = _array(kind, shape, rest)
                arrays.append(array)
            if not isinstance(folder, str) or not isinstance(name, str | None):
                raise ValueError("names")
            groups.append(Hdf5Group(folder, name, tuple(arrays)))
        if len(rest):
            raise ValueError("length")
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        if isinstance(error, NetworkError):
            raise
        raise _refusal("damaged", "its parts do not fit together") from None
    return Hdf5Content(config, version, tuple(groups))


def _missing(detail: str) -> NetworkError:
    return NetworkError(
        f"HDF5 files are parsed by a separate Python, but that one cannot import h5py ({detail}); install it in the environment of {sys.executable}"
    )


def _array(kind: Any, shape: Any, data: memoryview) -> tuple[Array, memoryview]:  # noqa: ANN401 - from JSON
    """Take one array off the front of the data."""
    if not isinstance(kind, str) or not re.fullmatch(r"[<>|][fiu](1|2|4|8|16)", kind):
        raise ValueError("kind")
    if not isinstance(shape, list) or len(shape) > MAX_DIMENSIONS:
        raise ValueError("shape")
    if not all(type(size) is int and 0 <= size <= LARGEST_FILE for size in shape):
        raise ValueError("shape")
    dtype = np.dtype(kind)
    length = math.prod(shape) * dtype.itemsize
    if length > len(data):
        raise ValueError("length")
    return np.frombuffer(data[:length], dtype).reshape(shape), data[length:]
