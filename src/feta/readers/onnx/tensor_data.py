"""Element types and stored arrays of ONNX files, which are untrusted input."""

import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from feta.arrays import Array
from feta.errors import NetworkError
from feta.io.regular_file import LARGEST_FILE, regular_size

if TYPE_CHECKING:
    import onnx

# ONNX's element types that FETA reads, and their numpy formats.
FLOAT, INT32, INT64, DOUBLE = 1, 6, 7, 11
FORMATS = {FLOAT: "<f4", INT32: "<i4", INT64: "<i8", DOUBLE: "<f8"}


def read_tensor(tensor: "onnx.TensorProto", folder: Path | None) -> Array:
    """Return a stored array whose data match its shape; read other files only in `folder`."""
    name = f"the stored array {tensor.name!r}"
    count = math.prod(tensor.dims)
    sizes = [*tensor.dims, count]  # a dimension of 0 makes the product 0 whatever the others are
    if any(not 0 <= size <= LARGEST_FILE // 4 for size in sizes):
        raise NetworkError(
            f"{name} has an invalid size: got the shape {list(tensor.dims)}; "
            f"expected at most {LARGEST_FILE // 4:,} numbers"
        )
    if tensor.data_type not in FORMATS:
        raise NetworkError(
            f"{name} has an unsupported type: got type {tensor.data_type}; "
            "expected float, double or integers; export it as float32"
        )
    dtype = np.dtype(FORMATS[tensor.data_type])
    if tensor.data_location == tensor.EXTERNAL:
        data = _read_external(tensor, folder, name, count * dtype.itemsize)
        return np.frombuffer(data, dtype).reshape(list(tensor.dims))
    if tensor.raw_data:
        n_stored = len(tensor.raw_data) / dtype.itemsize
        numbers = None
    else:
        fields = {FLOAT: tensor.float_data, INT32: tensor.int32_data, INT64: tensor.int64_data}
        numbers = fields.get(tensor.data_type, tensor.double_data)
        n_stored = len(numbers)
    if n_stored != count:
        raise NetworkError(
            f"{name} does not match its shape: got {n_stored:g} numbers; expected {count}"
        )
    if numbers is None:
        return np.frombuffer(tensor.raw_data, dtype).reshape(list(tensor.dims))
    return np.array(numbers, dtype).reshape(list(tensor.dims))


def _read_external(
    tensor: "onnx.TensorProto", folder: Path | None, name: str, length: int
) -> bytes:
    if folder is None:
        raise NetworkError(
            f"{name} is stored in another file, which FETA does not read by default; export with "
            "the weights inside, or allow it: --external-data on the command line, "
            "external_data=True in Python"
        )
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = entries.get("location", "")
    path = folder / location
    if Path(location).name != location or path.is_symlink():
        raise NetworkError(
            f"{name} has an invalid location: got {location!r}; "
            "expected a regular file in the model's folder"
        )
    offset = _entry_integer(entries, "offset", 0, name)
    stated_length = _entry_integer(entries, "length", length, name)
    if stated_length != length:
        raise NetworkError(
            f"{name} does not match its shape: got {stated_length} bytes; expected {length}"
        )
    size = regular_size(path)
    if offset < 0 or offset + length > size:
        raise NetworkError(
            f"{name} exceeds its file: got offset {offset} and length {length}; "
            f"expected both within {location!r}, which has {size} bytes"
        )
    with path.open("rb") as file:
        file.seek(offset)
        return file.read(length)


def _entry_integer(entries: dict[str, str], key: str, default: int, name: str) -> int:
    text = entries.get(key, str(default))
    if not (text.isascii() and text.isdigit() and len(text) < 20):  # noqa: PLR2004 - 2^63 has 19 digits
        raise NetworkError(f"{name} has an invalid {key}: got {text!r}; expected an integer")
    return int(text)
