"""Weights: layers by name from a .safetensors or .npz file; a last Sigmoid is not part of it."""

import io
import math
import struct
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from feta.arrays import Array
from feta.errors import NetworkError, one_of
from feta.io.read_bytes import LARGEST_FILE, read_bytes
from feta.scorer.network.network import Network

PACKINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)

# What the libraries below raise where a file was damaged or made to mislead them.
BROKEN = (
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
)


def read_weights(path: str | Path, layers: Sequence[str], *, activation: str = "relu") -> Network:
    """Read a network from named arrays: `fc1` stands for fc1.weight (out, in) and fc1.bias.

    Layers come in the order given, with the same activation between them.
    """
    try:
        arrays = _arrays(Path(path))
        if not layers:
            known = sorted({name.rpartition(".")[0] for name in arrays})
            message = f"the layers must be named in their order (--layers a,b on the command line); those in the file are {', '.join(map(repr, known))}"
            raise NetworkError(message)
        pairs = [
            (_array(arrays, f"{name}.weight"), _array(arrays, f"{name}.bias")) for name in layers
        ]
        double = all(weight.dtype.itemsize >= 8 for weight, _ in pairs)  # noqa: PLR2004 - bytes of a float64, in any order
        source = "float64" if double else "float32"
        return Network.from_layers(pairs, activation=activation, source=source)  # type: ignore[arg-type]  # a literal
    except NetworkError as error:
        raise NetworkError(f"{path}: {error}") from None


def _array(arrays: dict[str, Array], name: str) -> Array:
    if name not in arrays:
        raise NetworkError(f"an array must be {one_of(name, sorted(arrays))}")
    if arrays[name].dtype.kind != "f":
        raise NetworkError(f"{name!r} must hold floating-point numbers, got {arrays[name].dtype}")
    return arrays[name]


def _arrays(path: Path) -> dict[str, Array]:
    content = read_bytes(path)
    return _npz(content) if path.suffix == ".npz" else _safetensors(content)


def _safetensors(content: bytes) -> dict[str, Array]:
    from safetensors import SafetensorError  # noqa: PLC0415 - only where a file is touched
    from safetensors.numpy import load  # noqa: PLC0415 - only where a file is touched

    try:
        return dict(load(content))
    except (SafetensorError, *BROKEN) as error:
        raise NetworkError(f"the file must be in the safetensors format: {error}") from None


def _npz(content: bytes) -> dict[str, Array]:
    """Read arrays without pickle and without trusting any length the file claims."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()
            if sum(member.file_size for member in members) > LARGEST_FILE:
                raise NetworkError(f"the file must unpack to at most {LARGEST_FILE // 2**20} MB")
            if any(member.compress_type not in PACKINGS for member in members):
                raise NetworkError("the file must be packed as numpy does: stored, or deflated")
            return {
                member.filename.removesuffix(".npy"): _npy(member.filename, archive.read(member))
                for member in members
            }
    except NetworkError:
        raise
    except (zipfile.BadZipFile, zlib.error, struct.error, EOFError, *BROKEN) as error:
        raise NetworkError(f"the file must be an npz archive: {error}") from None


def _npy(name: str, content: bytes) -> Array:
    stream = io.BytesIO(content)
    try:
        version = np.lib.format.read_magic(stream)
        read = (
            np.lib.format.read_array_header_1_0
            if version == (1, 0)
            else np.lib.format.read_array_header_2_0
        )
        with warnings.catch_warnings():  # about headers of old files
            warnings.simplefilter("ignore")
            shape, by_columns, kind = read(stream)
    except (SyntaxError, tokenize.TokenError, EOFError, *BROKEN):
        raise NetworkError(f"{name!r} must be a numpy array") from None
    rest = content[stream.tell() :]
    if (
        kind.kind not in "biuf"
        or any(not 0 <= size <= LARGEST_FILE for size in shape)
        or len(rest) != math.prod(shape) * kind.itemsize
    ):
        raise NetworkError(f"{name!r} must hold plain numbers, as many as its shape {shape} says")
    return np.frombuffer(rest, kind).reshape(shape, order="F" if by_columns else "C")
