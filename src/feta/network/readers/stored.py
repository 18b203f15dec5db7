"""Stored: bytes and arrays from files that strangers wrote, each checked before it is taken."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from feta.errors import NetworkError

if TYPE_CHECKING:
    import onnx

Array = NDArray[Any]

# A network for tables has thousands of weights, not billions; beyond this a file is not a model
# that FETA could answer for, and may be one made to exhaust memory.
LARGEST_FILE = 512 * 2**20

# ONNX's element types that FETA takes: FLOAT, INT32, INT64, DOUBLE.
KINDS = {1: "<f4", 6: "<i4", 7: "<i8", 11: "<f8"}


def read_bytes(path: Path, most: int = LARGEST_FILE) -> bytes:
    """Read a regular file of bounded size."""
    if not path.exists():
        raise NetworkError("there is no such file")
    if not path.is_file():  # a device or a pipe would never end
        raise NetworkError("there must be a regular file here, got a folder or a device")
    size = path.stat().st_size
    if size > most:
        raise NetworkError(f"the file must have at most {most // 2**20} MB, got {size // 2**20} MB")
    return path.read_bytes()


def stored_array(tensor: "onnx.TensorProto", folder: Path | None) -> Array:
    """Take an ONNX array whose data are as long as its shape says; other files only in `folder`."""
    name = f"the stored array {tensor.name!r}"
    count = math.prod(tensor.dims)
    if any(size < 0 for size in tensor.dims) or count > LARGEST_FILE // 4:
        raise NetworkError(f"{name} must be of moderate size, got the shape {list(tensor.dims)}")
    if tensor.data_type not in KINDS:
        raise NetworkError(f"{name} must hold float, double or whole numbers")
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
        message = f"{name} lies in another file, which is not read by default; export with the weights inside, or ask for external data"
        raise NetworkError(message)
    told = {entry.key: entry.value for entry in tensor.external_data}
    location = told.get("location", "")
    path = folder / location
    if Path(location).name != location or path.is_symlink():
        raise NetworkError(f"{name} must lie beside the model, got {location!r}")
    try:
        offset = int(told.get("offset", "0"))
    except ValueError:
        raise NetworkError(
            f"{name} must have a number as its offset, got {told['offset']!r}"
        ) from None
    content = read_bytes(path)
    if offset < 0 or offset + length > len(content):
        message = f"{name} must lie within its file, got offset {offset} and length {length}"
        raise NetworkError(message)
    return content[offset : offset + length]
