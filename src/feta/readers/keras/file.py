"""Layers and arrays of a .keras or .h5 file, read without Keras and without pickle."""

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
from feta.io.regular_file import LARGEST_FILE, read_bytes
from feta.readers.keras.checks import (
    EXPORT,
    Precision,
    check_call,
    check_class,
    check_numbers,
    is_reference,
    policy_of,
)
from feta.readers.keras.hdf5 import damage_error, parse_hdf5

Config = dict[str, Any]
Arrays = dict[str, tuple[Array, ...]]

NEWEST_VERSION = 3  # the last version of Keras whose layers FETA knows
INTEGER_TYPES = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")

# Exceptions that a damaged description may raise.
DESCRIPTION_ERRORS = (
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
    """One layer: its class, settings, arrays in Keras's order, and the layers that it reads."""

    name: str
    kind: str
    config: Config
    arrays: tuple[Array, ...]
    inbound: tuple[str, ...]
    precision: Precision | None = None  # the format of its numbers, if the file states it

    @property
    def where(self) -> str:
        """The layer's name in messages."""
        return f"layer {self.name!r} ({self.kind})"

    @property
    def truncates(self) -> bool:
        """Whether it is an input that Keras truncates to integers."""
        return self.kind == "InputLayer" and self.config.get("dtype") in INTEGER_TYPES


@dataclass(frozen=True, slots=True, eq=False)
class KerasModel:
    """The layers, each after those that it reads; the inputs in order; and the last layer."""

    layers: tuple[KerasLayer, ...]
    entries: tuple[str, ...]
    end: str
    version: int  # of Keras, 2 or 3
    precision: Precision  # the lowest precision in which Keras may compute it


def load_keras(path: Path) -> KerasModel:
    """Return the layers and arrays of a file."""
    content = read_bytes(path)
    try:
        if content[:4] == b"PK\x03\x04":
            return _load_archive(content)
        return _load_h5(content)
    except NetworkError:
        raise
    except DESCRIPTION_ERRORS as error:
        raise damage_error(type(error).__name__) from None


def _load_archive(content: bytes) -> KerasModel:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            n_bytes = sum(member.file_size for member in archive.infolist())
            if n_bytes > LARGEST_FILE:
                raise NetworkError(
                    f"the unpacked file is too large: got {n_bytes:,} bytes; "
                    f"expected at most {LARGEST_FILE:,}"
                )
            config = json.loads(archive.read("config.json"))
            version = _parse_version(json.loads(archive.read("metadata.json"))["keras_version"])
            weights = archive.read("model.weights.h5")
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        raise NetworkError(f"the file is not a .keras archive: {error}") from None
    entries = _layer_entries(config)
    parsed = parse_hdf5(weights, whole=False)
    folders = {group.folder: (group.name, group.arrays) for group in parsed.groups}
    return _build_model(config, entries, _arrays_by_layer(folders, entries), version)


def _load_h5(content: bytes) -> KerasModel:
    parsed = parse_hdf5(content, whole=True)
    config = json.loads(parsed.config)
    arrays = {group.folder: group.arrays for group in parsed.groups}
    return _build_model(config, _layer_entries(config), arrays, _parse_version(parsed.version))


def _parse_version(text: object) -> int:
    version = int(str(text).partition(".")[0])
    if version > NEWEST_VERSION:
        raise NetworkError(
            f"the file's version of Keras is not supported: got {text}; "
            f"expected {NEWEST_VERSION} or older; {EXPORT}"
        )
    return version


def _arrays_by_layer(
    folders: dict[str, tuple[str | None, tuple[Array, ...]]], entries: list[Config]
) -> Arrays:
    """Return the arrays of each layer; older files name only numbered folders per class."""
    names = [name for name, _ in folders.values() if name is not None]
    if len(set(names)) == len(folders):
        return {str(name): arrays for name, arrays in folders.values()}
    names_of_folders = dict(_folders(entries))
    used = {folder for folder, (_, arrays) in folders.items() if arrays}
    if names or not used <= set(names_of_folders):
        raise NetworkError(
            "the file does not name the layer of each array; "
            "load it with the Keras that wrote it and save it again"
        )
    return {names_of_folders[folder]: folders[folder][1] for folder in used}


def _folders(entries: list[Config]) -> Iterator[tuple[str, str]]:
    """Yield the folder that Keras creates for each layer, and the layer's name.

    The folder is the layer's class in snake case, with a number from the second one on.
    """
    counts = Counter[str]()
    for entry in entries:
        parted = re.sub("(.)([A-Z][a-z]+)", r"\1_\2", str(entry["class_name"]))
        folder = re.sub("([a-z])([A-Z])", r"\1_\2", parted).lower()
        yield (f"{folder}_{counts[folder]}" if counts[folder] else folder), _name(entry)
        counts[folder] += 1


def _layer_entries(config: Config) -> list[Config]:
    """Return the descriptions of the layers, if the model computes nothing but its layers."""
    kind, settings = config["class_name"], config["config"]
    if kind not in ("Sequential", "Functional", "Model"):
        raise NetworkError(
            f"the model has an unsupported class: got {kind!r}, whose code is not in the file; "
            f"expected a Sequential or functional model; {EXPORT}"
        )
    check_class(config, "the model")
    return list(settings["layers"] if isinstance(settings, dict) else settings)


def _build_model(config: Config, entries: list[Config], arrays: Arrays, version: int) -> KerasModel:
    settings = config["config"]
    layers = [_build_layer(entry, arrays) for entry in entries]
    policies: set[Precision | None] = {layer.precision for layer in layers}
    if isinstance(settings, dict):
        policies.add(policy_of(settings, "the model"))
    # Whatever the policy, Keras 3 multiplies in float32, except with TensorFlow.
    double = version < NEWEST_VERSION and policies - {None} == {"float64"}
    precision: Precision = "float64" if double else "float32"
    if config["class_name"] == "Sequential":
        return _build_sequential(layers, version, precision)
    inputs = tuple(_references(settings["input_layers"]))
    ends = list(_references(settings["output_layers"]))
    if len(ends) != 1:
        raise NetworkError(
            f"the model has an unsupported number of outputs: got {len(ends)}; expected 1"
        )
    return KerasModel(tuple(_sort_layers(layers)), inputs, ends[0], version, precision)


def _build_sequential(layers: list[KerasLayer], version: int, precision: Precision) -> KerasModel:
    if layers[0].kind != "InputLayer":
        first = layers[0].config
        shape = first.get("batch_input_shape") or first.get("batch_shape") or first["build_shape"]
        entry = KerasLayer("input", "InputLayer", {"batch_shape": shape}, (), ())
        layers = [entry, *layers]
    chain = [layers[0]]
    for layer in layers[1:]:
        chain.append(replace(layer, inbound=(chain[-1].name,)))
    return KerasModel(tuple(chain), (layers[0].name,), chain[-1].name, version, precision)


def _build_layer(entry: Config, arrays: Arrays) -> KerasLayer:
    config = dict(entry["config"])
    built = entry.get("build_config") or {}
    if "input_shape" in built:
        config["build_shape"] = built["input_shape"]
    name = _name(entry)
    nodes = entry.get("inbound_nodes") or []
    if len(nodes) > 1:
        raise NetworkError(
            f"layer {name!r} is shared: got {len(nodes)} uses; expected 1; copy the layer"
        )
    kind, weights = str(entry["class_name"]), arrays.get(name, ())
    if kind == "Normalization":
        weights = weights[:2]  # the third counts the rows that it was adapted to
    layer = KerasLayer(name, kind, config, weights, tuple(_references(nodes)))
    check_class(entry, layer.where, within="layers")
    check_call(nodes, layer.where)
    policy = None if layer.truncates else policy_of(config, layer.where)
    return replace(layer, precision=check_numbers(weights, policy, layer.where))


def _name(entry: Config) -> str:
    return str(entry["config"].get("name", entry.get("name", "")))


def _references(nested: object) -> Iterator[str]:
    """Yield the layers that a nested list refers to, as ["name", 0, 0] or by their history."""
    if isinstance(nested, dict):
        if "keras_history" in nested:
            yield str(nested["keras_history"][0])
            return
        for value in nested.values():
            yield from _references(value)
    elif isinstance(nested, list | tuple):
        if is_reference(nested):
            yield nested[0]
            return
        for item in nested:
            yield from _references(item)


def _sort_layers(layers: list[KerasLayer]) -> Iterator[KerasLayer]:
    """Yield every layer after those that it reads."""
    waiting, done = list(layers), set[str]()
    while waiting:
        ready = [layer for layer in waiting if set(layer.inbound) <= done]
        if not ready:
            raise NetworkError(
                f"{waiting[0].where} reads layers that the model does not have: "
                f"got {', '.join(map(repr, waiting[0].inbound))}"
            )
        yield from ready
        done |= {layer.name for layer in ready}
        waiting = [layer for layer in waiting if layer.name not in done]
