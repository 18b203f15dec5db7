"""HDF5 program: parses the HDF5 part of Keras files in a process of its own.

The HDF5 library can crash on a damaged file. This file is run as a script and imports nothing of
feta. It reads requests from standard input, and writes one answer for each:

    start     8 bytes length, JSON: the parent's sys.path, and the limits
    request   1 byte kind (M: a whole model, W: the weights of a .keras file), 8 bytes length, content
    answer    8 bytes length, then 8 bytes length of the JSON, JSON, the arrays' bytes

Where the system can fork, each file is parsed in a fresh fork, with limits on memory, time and files.
"""

import codecs
import io
import json
import os
import signal
import sys
from contextlib import suppress
from typing import Any, BinaryIO

Group = Any  # a group of h5py, which ships no types

MODEL, WEIGHTS = b"M", b"W"


class Refusal(Exception):
    """A file that is not what Keras writes; the parent has words for each code."""

    def __init__(self, code: str, detail: str = "") -> None:
        super().__init__(code)
        self.code, self.detail = code, detail[:200]


def main() -> None:
    """Answer requests until standard input ends."""
    entry, out = sys.stdin.buffer, sys.stdout.buffer
    start = json.loads(_block(entry))
    sys.path[:] = start["path"]
    with suppress(ImportError):
        import h5py  # noqa: F401, PLC0415 - before forks, which then need not load it
    for name in ("ascii", "latin-1", "utf-8"):
        codecs.lookup(name)  # no module can be loaded once files are limited
    while kind := entry.read(1):
        answer = _apart(kind, _block(entry), start)
        out.write(len(answer).to_bytes(8, "little") + answer)
        out.flush()


def _block(entry: BinaryIO) -> bytes:
    return entry.read(int.from_bytes(entry.read(8), "little"))


def _apart(kind: bytes, content: bytes, limits: dict[str, int]) -> bytes:
    """Parse in a fork, where the system has forks: its end, whatever it is, becomes an answer."""
    if not hasattr(os, "fork"):
        return _answer(kind, content, limits)
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        code = 1
        try:
            os.close(reader)
            _limit(limits)
            with os.fdopen(writer, "wb") as pipe:
                pipe.write(_answer(kind, content, limits))
            code = 0
        finally:
            os._exit(code)  # without the exit handlers of the parent's copy
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        answer = pipe.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status in (-signal.SIGALRM, -signal.SIGXCPU):
        return _framed({"error": "time"})
    return answer if status == 0 else _framed({"error": "crash", "detail": str(status)})


def _limit(limits: dict[str, int]) -> None:
    """Bound time, memory and files of this process; as far as the system allows."""
    import resource  # noqa: PLC0415 - not on every system

    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(limits["seconds"])
    bounds = {"RLIMIT_CORE": 0, "RLIMIT_FSIZE": 0, "RLIMIT_NOFILE": 0}
    bounds["RLIMIT_CPU"] = limits["processor_seconds"]
    with suppress(OSError), open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123 - no pathlib needed
        pages = int(file.read().split()[0])
        bounds["RLIMIT_AS"] = pages * resource.getpagesize() + limits["memory"]
    for name, bound in bounds.items():
        with suppress(OSError, ValueError):
            # One second of processor time more, or the system kills without telling why.
            most = bound + 1 if name == "RLIMIT_CPU" else bound
            resource.setrlimit(getattr(resource, name), (bound, most))


def _answer(kind: bytes, content: bytes, limits: dict[str, int]) -> bytes:
    try:
        return _parsed(kind, content, limits["largest"])
    except Refusal as refusal:
        return _framed({"error": refusal.code, "detail": refusal.detail})
    except ImportError as error:
        return _framed({"error": "missing", "detail": str(error)[:200]})
    except MemoryError:
        return _framed({"error": "memory"})
    except Exception as error:
        return _framed({"error": "damaged", "detail": type(error).__name__})


def _framed(told: dict[str, object], data: bytes = b"") -> bytes:
    header = json.dumps(told).encode()
    return len(header).to_bytes(8, "little") + header + data


def _parsed(kind: bytes, content: bytes, largest: int) -> bytes:
    import h5py  # noqa: PLC0415 - an extra

    told: dict[str, object] = {}
    with h5py.File(io.BytesIO(content), "r") as file:
        if kind == MODEL:
            if "model_config" not in file.attrs:
                raise Refusal("weights only")
            told["config"] = _text(file.attrs["model_config"])
            told["version"] = _text(file.attrs.get("keras_version", "2"))
            found = _of_model(file)
        else:
            found = _of_weights(file)
        parts: list[bytes] = []
        groups = []
        for folder, name, datasets in found:
            shown = []
            for dataset in datasets:
                largest -= _checked_size(dataset, largest)
                parts.append(dataset[()].tobytes())
                shown.append([dataset.dtype.str, list(dataset.shape)])
            groups.append([folder, name, shown])
    told["groups"] = groups
    return _framed(told, b"".join(parts))


def _of_model(file: Group) -> list[tuple[str, str | None, list[Group]]]:
    """List the layers of a whole model, and their arrays in the order that the file states."""
    stored = _member(file, "model_weights")
    found: list[tuple[str, str | None, list[Group]]] = []
    for name in map(_text, stored.attrs["layer_names"]):
        group = _member(stored, name)
        names = [_text(one) for one in group.attrs["weight_names"]]
        found.append((name, name, [_member(group, one) for one in names]))
    return found


def _of_weights(file: Group) -> list[tuple[str, str | None, list[Group]]]:
    """List the folders of the layers, the layers' names where they are stored, and the arrays."""
    layers = _member(file, "layers") if "layers" in file else {}
    found: list[tuple[str, str | None, list[Group]]] = []
    for folder in layers:
        group = _member(layers, folder)
        if "vars" in group:
            held = _member(group, "vars")
            name = _text(held.attrs["name"]) if "name" in held.attrs else None
            found.append((folder, name, [_member(held, key) for key in sorted(held, key=int)]))
    return found


def _member(group: Group, path: str) -> Group:
    """Go down a path of plain members: a link could lead into any other file."""
    import h5py  # noqa: PLC0415 - an extra

    for part in path.split("/"):
        kind = group.get(part, getlink=True)
        if not isinstance(kind, h5py.HardLink):
            raise Refusal("absent" if kind is None else "link", path)
        group = group[part]
    return group


def _checked_size(dataset: Group, largest: int) -> int:
    if dataset.external or dataset.is_virtual:
        raise Refusal("elsewhere")
    size = int(dataset.size * dataset.dtype.itemsize)
    if dataset.dtype.kind not in "fiu" or size > largest:
        raise Refusal("numbers", str(dataset.name))
    return size


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


if __name__ == "__main__":
    main()
