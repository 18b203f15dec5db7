"""Stored: bytes and arrays from files that strangers wrote, each checked before it is taken."""

import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from feta.arrays import Array
from feta.errors import NetworkError
from feta.io.read_bytes import LARGEST_FILE, regular_size

if TYPE_CHECKING:
    import onnx

# ONNX's element types that FETA takes: FLOAT, INT32, INT64, DOUBLE.
KINDS = {1: "<f4", 6: "<i4", 7: "<i8", 11: "<f8"}


def stored_array(tensor: "onnx.TensorProto", folder: Path | None) -> Array:
    """Take an ONNX array whose data are as long as its shape says; other files only in `folder`."""
    name = f"the stored array {tensor.name!r}"
    count = math.prod(tensor.dims)
    sizes = [*tensor.dims, count]  # a dimension may be huge beside one that is 0
    if any(not 0 <= size <= LARGEST_FILE // 4 for size in sizes):
        raise NetworkError(f"{name} must be of moderate size, got the shape {list(tensor.dims)}")
    if tensor.data_type not in KINDS:
        raise NetworkError(f"{name} must hold float, double or whole numbers; export it as float32")
    kind = np.dtype(KINDS[tensor.data_type])
    if tensor.data_location == tensor.EXTERNAL:
        data = _external(tensor, folder, name, count * kind.itemsize)
        return np.frombuffer(data, kind).reshape(list(tensor.dims))
    if tensor.raw_data:
        held = len(tensor.raw_data) / kind.itemsize
        listed = None
    else:
        fields = {1: tensor.float_data, 6: tensor.int32_data, 7: tensor.int64_data}
        listed = fields.get(tensor.data_type, tensor.double_data)
        held = len(listed)
    if held != count:
        raise NetworkError(f"{name} must hold {count} numbers, as its shape says, got {held:g}")
    if listed is None:
        return np.frombuffer(tensor.raw_data, kind).reshape(list(tensor.dims))
    return np.array(listed, kind).reshape(list(tensor.dims))


def _external(tensor: "onnx.TensorProto", folder: Path | None, name: str, length: int) -> bytes:
    if folder is None:
        message = f"{name} lies in another file, which is not read by default; export with the weights inside, or ask for it: --external-data on the command line, external_data=True in Python"
        raise NetworkError(message)
    told = {entry.key: entry.value for entry in tensor.external_data}
    location = told.get("location", "")
    path = folder / location
    if Path(location).name != location or path.is_symlink():
        raise NetworkError(f"{name} must lie beside the model, got {location!r}")
    offset, told_length = _whole(told, "offset", 0, name), _whole(told, "length", length, name)
    if told_length != length:
        message = f"{name} must take {length} bytes, as its shape says, got {told_length}"
        raise NetworkError(message)
    size = regular_size(path)
    if offset < 0 or offset + length > size:
        message = f"{name} must lie within {location!r}, which has {size} bytes, got offset {offset} and length {length}"
        raise NetworkError(message)
    with path.open("rb") as file:
        file.seek(offset)
        return file.read(length)


def _whole(told: dict[str, str], key: str, default: int, name: str) -> int:
    text = told.get(key, str(default))
    if not (text.isascii() and text.isdigit() and len(text) < 20):  # noqa: PLR2004 - 2^63 has 19 digits
        raise NetworkError(f"{name} must have a whole number as its {key}, got {text!r}")
    return int(text)
