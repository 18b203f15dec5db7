"""Program that parses the HDF5 part of Keras files.

The HDF5 library can crash on a damaged file, so this file runs as a script in a separate process
and imports nothing of feta. It reads requests from standard input and writes one answer for each:

    start     8 bytes length, JSON: the parent's sys.path, and the limits
    request   1 byte kind (M: a whole model, W: the weights of a .keras file), 8 bytes length,
              content
    answer    8 bytes length, then 8 bytes length of the JSON, JSON, the arrays' bytes

If the system can fork, each file is parsed in a new fork with limits on memory, time and files.
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

# Characters of an error's detail that the parent may quote.
MAX_DETAIL = 200


class Hdf5Error(Exception):
    """A file that Keras did not write; the parent has a message for each code."""

    def __init__(self, code: str, detail: str = "") -> None:
        super().__init__(code)
        self.code, self.detail = code, detail[:MAX_DETAIL]


def main() -> None:
    """Answer requests until standard input ends."""
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    start = json.loads(_read_block(requests))
    sys.path[:] = start["path"]
    with suppress(ImportError):
        import h5py  # noqa: F401, PLC0415 - before forks, which then need not load it
    for name in ("ascii", "latin-1", "utf-8"):
        codecs.lookup(name)  # no module can be loaded once files are limited
    while kind := requests.read(1):
        answer = _answer_in_fork(kind, _read_block(requests), start)
        answers.write(len(answer).to_bytes(8, "little") + answer)
        answers.flush()


def _read_block(stream: BinaryIO) -> bytes:
    return stream.read(int.from_bytes(stream.read(8), "little"))


def _answer_in_fork(kind: bytes, content: bytes, limits: dict[str, int]) -> bytes:
    """Parse a file in a fork, if the system has forks; turn any end of it into an answer."""
    if not hasattr(os, "fork"):
        return _answer(kind, content, limits)
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        code = 1
        try:
            os.close(reader)
            _set_limits(limits)
            with os.fdopen(writer, "wb") as pipe:
                pipe.write(_answer(kind, content, limits))
            code = 0
        finally:
            os._exit(code)  # without the exit handlers copied from the parent
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        answer = pipe.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status in (-signal.SIGALRM, -signal.SIGXCPU):
        return _pack({"error": "time"})
    return answer if status == 0 else _pack({"error": "crash", "detail": str(status)})


def _set_limits(limits: dict[str, int]) -> None:
    """Limit time, memory and files of this process, as far as the system supports it."""
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
            # At the hard limit the system sends SIGKILL, which does not show the reason.
            hard = bound + 1 if name == "RLIMIT_CPU" else bound
            resource.setrlimit(getattr(resource, name), (bound, hard))


def _answer(kind: bytes, content: bytes, limits: dict[str, int]) -> bytes:
    try:
        return _parse_file(kind, content, limits["largest"])
    except Hdf5Error as error:
        return _pack({"error": error.code, "detail": error.detail})
    except ImportError as error:
        return _pack({"error": "missing", "detail": str(error)[:MAX_DETAIL]})
    except MemoryError:
        return _pack({"error": "memory"})
    except Exception as error:
        return _pack({"error": "damaged", "detail": type(error).__name__})


def _pack(fields: dict[str, object], data: bytes = b"") -> bytes:
    header = json.dumps(fields).encode()
    return len(header).to_bytes(8, "little") + header + data


def _parse_file(kind: bytes, content: bytes, largest: int) -> bytes:
    import h5py  # noqa: PLC0415 - an extra

    fields: dict[str, object] = {}
    with h5py.File(io.BytesIO(content), "r") as file:
        if kind == MODEL:
            if "model_config" not in file.attrs:
                raise Hdf5Error("weights only")
            fields["config"] = _text(file.attrs["model_config"])
            fields["version"] = _text(file.attrs.get("keras_version", "2"))
            layers = _model_layers(file)
        else:
            layers = _weights_layers(file)
        parts: list[bytes] = []
        groups = []
        for folder, name, datasets in layers:
            formats = []
            for dataset in datasets:
                largest -= _check_size(dataset, largest)
                parts.append(dataset[()].tobytes())
                formats.append([dataset.dtype.str, list(dataset.shape)])
            groups.append([folder, name, formats])
    fields["groups"] = groups
    return _pack(fields, b"".join(parts))


def _model_layers(file: Group) -> list[tuple[str, str | None, list[Group]]]:
    """Return the layers of a whole model, with their arrays in the order of the file."""
    weights = _member(file, "model_weights")
    layers: list[tuple[str, str | None, list[Group]]] = []
    for name in map(_text, weights.attrs["layer_names"]):
        group = _member(weights, name)
        names = [_text(weight_name) for weight_name in group.attrs["weight_names"]]
        layers.append((name, name, [_member(group, weight_name) for weight_name in names]))
    return layers


def _weights_layers(file: Group) -> list[tuple[str, str | None, list[Group]]]:
    """Return the folders of the layers, the layers' names if they are stored, and the arrays."""
    folders = _member(file, "layers") if "layers" in file else {}
    layers: list[tuple[str, str | None, list[Group]]] = []
    for folder in folders:
        group = _member(folders, folder)
        if "vars" in group:
            arrays = _member(group, "vars")
            name = _text(arrays.attrs["name"]) if "name" in arrays.attrs else None
            layers.append((folder, name, [_member(arrays, key) for key in sorted(arrays, key=int)]))
    return layers


def _member(group: Group, path: str) -> Group:
    """Follow a path of plain members; a link could point into another file."""
    import h5py  # noqa: PLC0415 - an extra

    for part in path.split("/"):
        link = group.get(part, getlink=True)
        if not isinstance(link, h5py.HardLink):
            raise Hdf5Error("absent" if link is None else "link", path)
        group = group[part]
    return group


def _check_size(dataset: Group, largest: int) -> int:
    """Return the size of an array in bytes; reject one that is too large or has no numbers."""
    if dataset.external or dataset.is_virtual:
        raise Hdf5Error("elsewhere")
    size = int(dataset.size * dataset.dtype.itemsize)
    if dataset.dtype.kind not in "fiu" or size > largest:
        raise Hdf5Error("numbers", str(dataset.name))
    return size


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


if __name__ == "__main__":
    main()
