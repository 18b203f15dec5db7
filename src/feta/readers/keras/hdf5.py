"""HDF5 parts of a Keras file, parsed in another process.

A damaged file can crash the HDF5 library, and the process with it. The answer of the other process
is untrusted input: everything in it is checked, and nothing is unpickled.
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
from feta.io.regular_file import LARGEST_FILE

PROGRAM = Path(__file__).with_name("hdf5_program.py")

# Limits of processor time and wall-clock time per file, in seconds. A valid file of the largest
# size takes about one second; the library never finishes some damaged files.
PROCESSOR_SECONDS = 10
SECONDS = 60
# Seconds beyond SECONDS after which the whole program is killed.
GRACE_SECONDS = 10
# Memory per file: its bytes, its arrays, and one copy of each while they are sent.
MEMORY = 8 * LARGEST_FILE
# An answer holds the arrays and, in JSON, the description of the layers.
LARGEST_ANSWER = 2 * LARGEST_FILE
MAX_DIMENSIONS = 32

# The environment of the program: one thread, and no plugins of the HDF5 library.
SETTINGS = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "HDF5_PLUGIN_PRELOAD": "::"}

# Messages by the error codes of the program.
REMEDY = "save it again: model.save('model.keras')"
MESSAGES = {
    "weights only": (
        "the file holds weights only; expected a whole model: model.save('model.keras')"
    ),
    "absent": f"the file lacks {{detail!r}}; {REMEDY}",
    "link": f"the file holds a link instead of {{detail!r}}; expected the data itself; {REMEDY}",
    "elsewhere": f"the file stores its arrays in other files; expected them inside; {REMEDY}",
    "numbers": (
        "the array {detail!r} has an unsupported type or size; "
        f"expected plain numbers of at most {LARGEST_FILE:,} bytes in all"
    ),
    "memory": (
        f"the file needs too much memory to parse; expected at most {MEMORY // 2**20} MB; "
        f"it may be damaged: {REMEDY}"
    ),
    "time": (
        f"the file takes longer to parse than allowed; expected at most {PROCESSOR_SECONDS} s; "
        f"it may be damaged: {REMEDY}"
    ),
    "crash": (
        "the file is damaged: the HDF5 library crashed on it (exit status {detail}); " + REMEDY
    ),
    "damaged": (
        "the file is not a complete .keras or .h5 model: got {detail}; "
        f"expected one that Keras wrote; {REMEDY}"
    ),
}


@dataclass(frozen=True, slots=True, eq=False)
class Hdf5Group:
    """The arrays of one layer, its folder in the file, and its name if the file has it."""

    folder: str
    name: str | None
    arrays: tuple[Array, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Hdf5Content:
    """The content of a Keras HDF5 file; a weights file has neither description nor version."""

    config: str
    version: str
    groups: tuple[Hdf5Group, ...]


def parse_hdf5(content: bytes, *, whole: bool) -> Hdf5Content:
    """Parse the bytes of a file: a whole model, or the weights within a .keras file."""
    with Hdf5Program() as program:
        return program.parse(content, whole=whole)


def damage_error(detail: str) -> NetworkError:
    """Return the error for a file that Keras did not write."""
    return _error("damaged", detail)


class Hdf5Program:
    """A Python process that parses files, each in its own fork if the system supports forks.

    It is a plain subprocess, so that it works in notebooks and in daemonic workers.
    """

    def __init__(self, *, processor_seconds: int = PROCESSOR_SECONDS) -> None:
        if not _h5py_is_installed():
            raise MissingExtra("h5py", "keras")
        if not sys.executable:
            raise NetworkError(
                "HDF5 files are parsed by a separate Python, but sys.executable is empty; "
                "run FETA with a regular Python"
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
        with suppress(OSError):  # if the program did not start, the first request fails
            self._stdin.write(_frame(json.dumps(start).encode()))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def alive(self) -> bool:
        """Whether the program can parse another file."""
        return self.process.poll() is None

    @property
    def _stdin(self) -> IO[bytes]:
        assert self.process.stdin is not None
        return self.process.stdin

    def parse(self, content: bytes, *, whole: bool) -> Hdf5Content:
        """Parse one file."""
        timer = threading.Timer(SECONDS + GRACE_SECONDS, self._kill)
        timer.start()
        try:
            with suppress(OSError):  # if the program has ended, its answer is missing
                self._stdin.write((b"M" if whole else b"W") + _frame(content))
                self._stdin.flush()
            answer = self._read_answer()
        finally:
            timer.cancel()
        return _parse_answer(answer, whole=whole)

    def _read_answer(self) -> bytes:
        assert self.process.stdout is not None
        length = int.from_bytes(self.process.stdout.read(8), "little")
        answer = self.process.stdout.read(length) if length <= LARGEST_ANSWER else b""
        if not answer or len(answer) != length:
            self._kill()
            raise _error("crash", str(self.process.wait()))
        return answer

    def _kill(self) -> None:
        with suppress(OSError):
            if hasattr(os, "killpg"):
                os.killpg(self.process.pid, signal.SIGKILL)
            else:
                self.process.kill()

    def close(self) -> None:
        """Kill the process and close its pipes."""
        self._kill()
        for pipe in (self.process.stdin, self.process.stdout):
            with suppress(OSError):
                assert pipe is not None
                pipe.close()
        self.process.wait()


def _h5py_is_installed() -> bool:
    """Search for h5py without importing it."""
    try:
        return importlib.util.find_spec("h5py") is not None
    except ValueError:  # a test or a user has blocked its import
        return False


def _frame(content: bytes) -> bytes:
    return len(content).to_bytes(8, "little") + content


def _error(code: str, detail: str = "") -> NetworkError:
    return NetworkError(MESSAGES[code].format(detail=detail))


def _parse_answer(answer: bytes, *, whole: bool) -> Hdf5Content:
    """Check an answer completely before any of it is used."""
    length = int.from_bytes(answer[:8], "little")
    header, data = answer[8 : 8 + length], answer[8 + length :]
    try:
        fields = json.loads(header)
        if fields.get("error") == "missing":
            raise _import_error(str(fields.get("detail")))
        if fields.get("error") in MESSAGES:
            raise _error(fields["error"], str(fields.get("detail", "")))
        config, version = (fields["config"], fields["version"]) if whole else ("", "")
        if not isinstance(config, str) or not isinstance(version, str):
            raise ValueError("texts")
        groups, rest = [], memoryview(data)
        for folder, name, formats in fields["groups"]:
            arrays = []
            for kind, shape in formats:
                array, rest = _take_array(kind, shape, rest)
                arrays.append(array)
            if not isinstance(folder, str) or not isinstance(name, str | None):
                raise ValueError("names")
            groups.append(Hdf5Group(folder, name, tuple(arrays)))
        if len(rest):
            raise ValueError("length")
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        if isinstance(error, NetworkError):
            raise
        raise damage_error("parts that do not fit together") from None
    return Hdf5Content(config, version, tuple(groups))


def _import_error(detail: str) -> NetworkError:
    return NetworkError(
        f"HDF5 files are parsed by a separate Python, which cannot import h5py: got {detail}; "
        f"install h5py in the environment of {sys.executable}"
    )


def _take_array(kind: Any, shape: Any, data: memoryview) -> tuple[Array, memoryview]:  # noqa: ANN401 - from JSON
    """Return the array at the front of the data, and the rest."""
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
