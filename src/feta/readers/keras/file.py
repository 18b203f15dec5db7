"""Keras file: the layers and arrays of a .keras or .h5 file, taken without Keras and without pickle."""

import io
import json
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from feta.arrays import Array
from feta.errors import NetworkError
from feta.io.read_bytes import LARGEST_FILE, read_bytes
from feta.readers.keras.checks import (
    Precision,
    check_call,
    check_class,
    check_numbers,
    policy_of,
    refers,
)
from feta.readers.keras.hdf5 import parse_hdf5

Config = dict[str, Any]
Arrays = dict[str, tuple[Array, ...]]

NEWEST = 3  # the last Keras whose layers FETA knows
WHOLE = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


# What reading a damaged description may raise.
BROKEN = (
    ArithmeticError,
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
    precision: Precision | None = None  # what its numbers are stored in, where the file tells

    @property
    def where(self) -> str:
        """What a message calls it."""
        return f"layer {self.name!r} ({self.kind})"

    @property
    def whole(self) -> bool:
        """Whether it is an input that Keras cuts down to whole numbers."""
        return self.kind == "InputLayer" and self.config.get("dtype") in WHOLE


@dataclass(frozen=True, slots=True, eq=False)
class KerasModel:
    """The layers, each after those that it takes; the inputs in the model's order; the last layer."""

    layers: tuple[KerasLayer, ...]
    entries: tuple[str, ...]
    end: str
    version: int  # Keras's own, 2 or 3
    precision: Precision  # the least that it may be computed in


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
            version = _version(json.loads(archive.read("metadata.json"))["keras_version"])
            weights = archive.read("model.weights.h5")
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        raise NetworkError(f"the file must be a .keras archive: {error}") from None
    listed = _listed(config)
    parsed = parse_hdf5(weights, whole=False)
    stored = {group.folder: (group.name, group.arrays) for group in parsed.groups}
    return _model(config, listed, _named(stored, listed), version)


def _from_h5(content: bytes) -> KerasModel:
    parsed = parse_hdf5(content, whole=True)
    config = json.loads(parsed.config)
    arrays = {group.folder: group.arrays for group in parsed.groups}
    return _model(config, _listed(config), arrays, _version(parsed.version))


def _version(told: object) -> int:
    version = int(str(told).partition(".")[0])
    if version > NEWEST:
        message = f"the file must be of Keras {NEWEST} or older, got {told}; export the model as ONNX: model.export('model.onnx', format='onnx')"
        raise NetworkError(message)
    return version


def _named(stored: dict[str, tuple[str | None, tuple[Array, ...]]], listed: list[Config]) -> Arrays:
    """Give each layer's arrays by its name; older files have only numbered folders a class."""
    names = [name for name, _ in stored.values() if name is not None]
    if len(set(names)) == len(stored):
        return {str(name): arrays for name, arrays in stored.values()}
    folders = dict(_folders(listed))
    full = {folder for folder, (_, arrays) in stored.items() if arrays}
    if names or not full <= set(folders):
        raise NetworkError(
            "the file must name the layer of each array, but does not for all; load it with the Keras that wrote it and save it again"
        )
    return {folders[folder]: stored[folder][1] for folder in full}


def _folders(listed: list[Config]) -> Iterator[tuple[str, str]]:
    """Give the folder that Keras makes for each layer: its class in snake case, numbered."""
    seen = Counter[str]()
    for entry in listed:
        parted = re.sub("(.)([A-Z][a-z]+)", r"\1_\2", str(entry["class_name"]))
        folder = re.sub("([a-z])([A-Z])", r"\1_\2", parted).lower()
        yield (f"{folder}_{seen[folder]}" if seen[folder] else folder), _name(entry)
        seen[folder] += 1


def _listed(config: Config) -> list[Config]:
    """Give the layers' descriptions, if the model is one whose layers are all that it does."""
    kind, inside = config["class_name"], config["config"]
    if kind not in ("Sequential", "Functional", "Model"):
        message = f"the model must be Sequential or functional, got {kind!r}, whose code is not in the file; export it as ONNX: model.export('model.onnx', format='onnx')"
        raise NetworkError(message)
    check_class(config, "the model")
    return list(inside["layers"] if isinstance(inside, dict) else inside)


def _model(config: Config, listed: list[Config], arrays: Arrays, version: int) -> KerasModel:
    inside = config["config"]
    layers = [_layer(entry, arrays) for entry in listed]
    told: set[Precision | None] = {one.precision for one in layers}
    if isinstance(inside, dict):
        told.add(policy_of(inside, "the model"))
    # Whatever the policy, Keras 3 multiplies in float32, except where TensorFlow runs it.
    double = version < NEWEST and told - {None} == {"float64"}
    precision: Precision = "float64" if double else "float32"
    if config["class_name"] == "Sequential":
        return _in_a_row(layers, version, precision)
    entries = tuple(_names(inside["input_layers"]))
    ends = list(_names(inside["output_layers"]))
    if len(ends) != 1:
        raise NetworkError(f"the model must have one output, got {len(ends)}")
    return KerasModel(tuple(_ordered(layers)), entries, ends[0], version, precision)


def _in_a_row(layers: list[KerasLayer], version: int, precision: Precision) -> KerasModel:
    if layers[0].kind != "InputLayer":
        first = layers[0].config
        shape = first.get("batch_input_shape") or first.get("batch_shape") or first["build_shape"]
        entry = KerasLayer("input", "InputLayer", {"batch_shape": shape}, (), ())
        layers = [entry, *layers]
    chained = [layers[0]]
    for one in layers[1:]:
        chained.append(replace(one, inbound=(chained[-1].name,)))
    return KerasModel(tuple(chained), (layers[0].name,), chained[-1].name, version, precision)


def _layer(entry: Config, arrays: Arrays) -> KerasLayer:
    config = dict(entry["config"])
    built = entry.get("build_config") or {}
    if "input_shape" in built:
        config["build_shape"] = built["input_shape"]
    name = _name(entry)
    nodes = entry.get("inbound_nodes") or []
    if len(nodes) > 1:
        raise NetworkError(f"layer {name!r} is used {len(nodes)} times, which is not read; copy it")
    kind, held = str(entry["class_name"]), arrays.get(name, ())
    if kind == "Normalization":
        held = held[:2]  # the third counts the rows that it was adapted to
    layer = KerasLayer(name, kind, config, held, tuple(_names(nodes)))
    check_class(entry, layer.where, within="layers")
    check_call(nodes, layer.where)
    policy = None if layer.whole else policy_of(config, layer.where)
    return replace(layer, precision=check_numbers(held, policy, layer.where))


def _name(entry: Config) -> str:
    return str(entry["config"].get("name", entry.get("name", "")))


def _names(nested: object) -> Iterator[str]:
    """Find the layers that a nested list refers to, as ["name", 0, 0] or by their history."""
    if isinstance(nested, dict):
        if "keras_history" in nested:
            yield str(nested["keras_history"][0])
            return
        for one in nested.values():
            yield from _names(one)
    elif isinstance(nested, list | tuple):
        if refers(nested):
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
