"""Keras file: the layers and arrays of a .keras or .h5 file, taken without Keras and without pickle."""

import io
import json
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from feta.errors import MissingExtra, NetworkError
from feta.network.readers.stored import LARGEST_FILE, Array, read_bytes

Config = dict[str, Any]
Group = Any  # a group of h5py, which ships no types


# What reading a damaged description may raise.
BROKEN = (
    AttributeError,
    LookupError,
    OSError,
    RecursionError,
    RuntimeError,
    TypeError,
    ValueError,
)


@dataclass(frozen=True, slots=True, eq=False)
class KerasLayer:
    """A layer: its class, its settings, its arrays in Keras's own order, and what goes into it."""

    name: str
    kind: str
    config: Config
    arrays: tuple[Array, ...]
    inbound: tuple[str, ...]

    @property
    def where(self) -> str:
        """What a message calls it."""
        return f"layer {self.name!r} ({self.kind})"


@dataclass(frozen=True, slots=True, eq=False)
class KerasModel:
    """The layers, each after those that it takes; the inputs in the model's order; the last layer."""

    layers: tuple[KerasLayer, ...]
    entries: tuple[str, ...]
    end: str
    version: int  # Keras's own, 2 or 3


def load_keras(path: Path) -> KerasModel:
    """Open a file as far as its layers and arrays."""
    content = read_bytes(path)
    try:
        if content[:4] == b"PK\x03\x04":
            return _from_archive(content)
        return _from_h5(content)
    except NetworkError:
        raise
    except BROKEN as error:
        raise damaged(error) from None


def damaged(error: Exception) -> NetworkError:
    """Say that a file is not what Keras writes."""
    return NetworkError(
        f"the file must be a whole .keras or .h5 model as Keras writes it, but is not ({type(error).__name__}); save it again: model.save('model.keras')"
    )


def _from_archive(content: bytes) -> KerasModel:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if sum(member.file_size for member in archive.infolist()) > LARGEST_FILE:
                raise NetworkError(f"the file must unpack to at most {LARGEST_FILE // 2**20} MB")
            config = json.loads(archive.read("config.json"))
            weights = archive.read("model.weights.h5")
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        raise NetworkError(f"the file must be a .keras archive: {error}") from None
    with _opened(weights) as file:
        arrays = dict(_named_arrays(file.get("layers", file)))
    return _model(config, arrays, 3)


def _from_h5(content: bytes) -> KerasModel:
    with _opened(content) as file:
        if "model_config" not in file.attrs:
            raise NetworkError(
                "the file must hold the whole model, not its weights only: model.save('model.keras')"
            )
        config = json.loads(_text(file.attrs["model_config"]))
        version = int(_text(file.attrs.get("keras_version", "2")).partition(".")[0])
        stored = _member(file, "model_weights")
        arrays = {}
        for name in map(_text, stored.attrs["layer_names"]):
            group = _member(stored, name)
            names = [_text(one) for one in group.attrs["weight_names"]]
            arrays[name] = tuple(_array(_member(group, one)) for one in names)
    return _model(config, arrays, version)


def _opened(content: bytes) -> Group:
    try:
        import h5py  # noqa: PLC0415 - an extra
    except ImportError:
        raise MissingExtra("h5py", "keras") from None
    return h5py.File(io.BytesIO(content), "r")


def _named_arrays(layers: Group) -> Iterator[tuple[str, tuple[Array, ...]]]:
    """Give each layer's arrays by the layer's own name, which stands beside them."""
    for folder in layers:
        group = _member(layers, folder)
        if "vars" in group:
            stored = _member(group, "vars")
            name = _text(stored.attrs.get("name", folder))
            yield name, tuple(_array(_member(stored, key)) for key in sorted(stored, key=int))


def _member(group: Group, path: str) -> Group:
    """Go down a path of plain members: a link could lead into any other file."""
    import h5py  # noqa: PLC0415 - an extra

    for part in path.split("/"):
        if not isinstance(group.get(part, getlink=True), h5py.HardLink):
            raise NetworkError(f"the file must hold {path!r} itself, not a link to it")
        group = group[part]
    return group


def _array(dataset: Group) -> Array:
    if dataset.external or dataset.is_virtual:
        raise NetworkError("the file must hold its arrays itself, not in other files")
    if dataset.dtype.kind not in "fiu" or dataset.size * dataset.dtype.itemsize > LARGEST_FILE:
        raise NetworkError(f"the array {dataset.name!r} must hold plain numbers of moderate size")
    return np.asarray(dataset[()])


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _model(config: Config, arrays: dict[str, tuple[Array, ...]], version: int) -> KerasModel:
    kind, inside = config["class_name"], config["config"]
    if kind not in ("Sequential", "Functional", "Model"):
        message = f"the model must be Sequential or functional, got {kind!r}, whose code is not in the file; export it as ONNX: model.export('model.onnx', format='onnx')"
        raise NetworkError(message)
    listed = inside["layers"] if isinstance(inside, dict) else inside
    layers = [_layer(entry, arrays) for entry in listed]
    if kind == "Sequential":
        return _in_a_row(layers, version)
    entries = tuple(_names(inside["input_layers"]))
    ends = list(_names(inside["output_layers"]))
    if len(ends) != 1:
        raise NetworkError(f"the model must have one output, got {len(ends)}")
    return KerasModel(tuple(_ordered(layers)), entries, ends[0], version)


def _in_a_row(layers: list[KerasLayer], version: int) -> KerasModel:
    if layers[0].kind != "InputLayer":
        first = layers[0].config
        shape = first.get("batch_input_shape") or first.get("batch_shape") or first["build_shape"]
        entry = KerasLayer("input", "InputLayer", {"batch_shape": shape}, (), ())
        layers = [entry, *layers]
    chained = [layers[0]]
    for one in layers[1:]:
        before = chained[-1].name
        chained.append(KerasLayer(one.name, one.kind, one.config, one.arrays, (before,)))
    return KerasModel(tuple(chained), (layers[0].name,), chained[-1].name, version)


def _layer(entry: Config, arrays: dict[str, tuple[Array, ...]]) -> KerasLayer:
    config = dict(entry["config"])
    built = entry.get("build_config") or {}
    if "input_shape" in built:
        config["build_shape"] = built["input_shape"]
    name = str(config.get("name", entry.get("name", "")))
    nodes = entry.get("inbound_nodes") or []
    if len(nodes) > 1:
        raise NetworkError(f"layer {name!r} is used {len(nodes)} times, which is not read; copy it")
    inbound = tuple(_names(nodes))
    return KerasLayer(name, str(entry["class_name"]), config, arrays.get(name, ()), inbound)


def _names(nested: object) -> Iterator[str]:
    """Find the layers that a nested list refers to, as ["name", 0, 0] or by their history."""
    if isinstance(nested, dict):
        if "keras_history" in nested:
            yield str(nested["keras_history"][0])
            return
        for one in nested.values():
            yield from _names(one)
    elif isinstance(nested, list | tuple):
        if len(nested) >= 3 and isinstance(nested[0], str) and isinstance(nested[1], int):  # noqa: PLR2004 - name, node, tensor
            yield nested[0]
            return
        for one in nested:
            yield from _names(one)


def _ordered(layers: list[KerasLayer]) -> Iterator[KerasLayer]:
    """Put every layer after those that it takes."""
    waiting, done = list(layers), set[str]()
    while waiting:
        ready = [one for one in waiting if set(one.inbound) <= done]
        if not ready:
            raise NetworkError(f"{waiting[0].where} must take layers that the model has")
        yield from ready
        done |= {one.name for one in ready}
        waiting = [one for one in waiting if one.name not in done]
