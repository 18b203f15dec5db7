"""ONNX files as messages."""

from pathlib import Path
from typing import TYPE_CHECKING

from feta.errors import NetworkError
from feta.io.regular_file import read_bytes

if TYPE_CHECKING:
    import onnx


def decode(path: Path) -> "onnx.ModelProto":
    """Return the model of a file; its graph has one operator or more."""
    import onnx  # noqa: PLC0415 - slow to import
    from google.protobuf.message import DecodeError  # noqa: PLC0415 - comes with onnx

    content = read_bytes(path)
    try:
        model = onnx.load_model_from_string(content)
    except (DecodeError, ValueError, RecursionError):
        raise NetworkError(
            "the file cannot be decoded; expected an ONNX model; export it again"
        ) from None
    if not model.graph.node:
        raise NetworkError(
            "the file has no operators; expected an ONNX model with operators; export it again"
        )
    return model
