"""Reader of named layers in .safetensors and .npz files; a last sigmoid is not stored there."""

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
from feta.errors import NetworkError, unknown_choice
from feta.io.regular_file import LARGEST_FILE, read_bytes
from feta.scorer.network.network import Network

COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)

# Exceptions that the libraries below raise for damaged or hostile files.
DAMAGE_ERRORS = (
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

    The layers are read in this order, with the same activation between them.
    """
    try:
        arrays = _load_arrays(Path(path))
        if not layers:
            known = sorted({name.rpartition(".")[0] for name in arrays})
            raise NetworkError(
                "the names of the layers are missing; expected them in order "
                "(--layers a,b on the command line); "
                f"the file has {', '.join(map(repr, known))}"
            )
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
        raise NetworkError(f"unknown array: {unknown_choice(name, sorted(arrays))}")
    if arrays[name].dtype.kind != "f":
        raise NetworkError(
            f"{name!r} has an unsupported type: got {arrays[name].dtype}; "
            "expected floating-point numbers"
        )
    return arrays[name]


def _load_arrays(path: Path) -> dict[str, Array]:
    content = read_bytes(path)
    return _parse_npz(content) if path.suffix == ".npz" else _parse_safetensors(content)


def _parse_safetensors(content: bytes) -> dict[str, Array]:
    from safetensors import SafetensorError  # noqa: PLC0415 - only if a file is read
    from safetensors.numpy import load  # noqa: PLC0415 - only if a file is read

    try:
        return dict(load(content))
    except (SafetensorError, *DAMAGE_ERRORS) as error:
        raise NetworkError(f"the file is not in the safetensors format: {error}") from None


def _parse_npz(content: bytes) -> dict[str, Array]:
    """Read arrays without pickle and without trusting any length stored in the file."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()
            n_bytes = sum(member.file_size for member in members)
            if n_bytes > LARGEST_FILE:
                raise NetworkError(
                    f"the unpacked file is too large: got {n_bytes:,} bytes; "
                    f"expected at most {LARGEST_FILE:,}"
                )
            if any(member.compress_type not in COMPRESSIONS for member in members):
                raise NetworkError(
                    "the archive has an unsupported compression; "
                    "expected stored or deflated members, as numpy writes them"
                )
            return {
                member.filename.removesuffix(".npy"): _parse_npy(
                    member.filename, archive.read(member)
                )
                for member in members
            }
    except NetworkError:
        raise
    except (zipfile.BadZipFile, zlib.error, struct.error, EOFError, *DAMAGE_ERRORS) as error:
        raise NetworkError(f"the file is not an npz archive: {error}") from None


def _parse_npy(name: str, content: bytes) -> Array:
    stream = io.BytesIO(content)
    try:
        version = np.lib.format.read_magic(stream)
        read_header = (
            np.lib.format.read_array_header_1_0
            if version == (1, 0)
            else np.lib.format.read_array_header_2_0
        )
        with warnings.catch_warnings():  # about headers that early versions wrote
            warnings.simplefilter("ignore")
            shape, by_columns, dtype = read_header(stream)
    except (SyntaxError, tokenize.TokenError, EOFError, *DAMAGE_ERRORS):
        raise NetworkError(f"{name!r} is not a numpy array") from None
    data = content[stream.tell() :]
    if dtype.kind not in "biuf":
        raise NetworkError(f"{name!r} has an unsupported type: got {dtype}; expected numbers")
    invalid_shape = any(not 0 <= size <= LARGEST_FILE for size in shape)
    if invalid_shape or len(data) != math.prod(shape) * dtype.itemsize:
        raise NetworkError(
            f"{name!r} does not match its header: got {len(data):,} bytes of {dtype}; "
            f"expected the shape {shape}"
        )
    return np.frombuffer(data, dtype).reshape(shape, order="F" if by_columns else "C")
