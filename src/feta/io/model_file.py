"""Model files: a model in one `.feta` file, without pickle; loading checks fingerprints.

The format is safetensors. JSON in the metadata contains the space, the rule and facts about the
source of the network.
"""

import hashlib
import json
from collections.abc import Callable
from dataclasses import MISSING, asdict, fields
from pathlib import Path
from typing import Any

import numpy as np

from feta.arrays import Array
from feta.errors import FetaError, NetworkError
from feta.io.part_file import written_whole
from feta.io.read_bytes import read_bytes
from feta.io.table_options import TableOptions
from feta.io.table_section import options_json, parse_table_options
from feta.model import Model
from feta.rule import Argmax, OneVsRest, Rule, Threshold, Tolerance
from feta.scorer.network.activation import Activation
from feta.scorer.network.network import Affine, Columns, LookupTable, Measured, Network
from feta.space.attribute import Attribute, Categorical, Derived, Integer, Levels, Real
from feta.space.feature_space import FeatureSpace

FORMAT = "feta-model"
VERSION = 1

CHANGED = "the file's content must match its fingerprint, but was changed; save it again"

# What building a model from a damaged description may raise.
BROKEN = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)

ATTRIBUTES: dict[str, type[Attribute]] = {
    kind.kind: kind for kind in (Categorical, Derived, Integer, Levels, Real)
}

RULES: dict[str, type[Rule]] = {
    kind.__name__: kind for kind in (Argmax, OneVsRest, Threshold, Tolerance)
}


def save_model(model: Model, path: str | Path, *, table: TableOptions | None = None) -> None:
    """Write a model to a `.feta` file; an existing file is replaced at once or not at all.

    `table` says how pandas reads the user's CSV files, as a schema's `[table]` does.
    """
    save = _safetensors()[0]
    description = _description(model)
    listed = options_json(table or TableOptions())
    if listed:
        description["table"] = listed
        description["fingerprints"]["table"] = _digest(model.fingerprint, listed)
    content = save(_arrays(model.network), {FORMAT: json.dumps(description)})
    with written_whole(Path(path)) as part:
        part.write_bytes(content)


def load_model(path: str | Path) -> Model:
    """Read a model from a `.feta` file."""
    try:
        return _load(Path(path))
    except FetaError as error:
        raise NetworkError(f"{path}: {error}") from None


def load_table_options(path: str | Path) -> TableOptions:
    """Read from a `.feta` file how pandas reads the user's CSV files."""
    try:
        description, _ = _parts(read_bytes(Path(path)))
        listed = description.get("table")
        if listed is None:
            return TableOptions()
        if description["fingerprints"].get("table") != _digest(
            description["fingerprints"]["model"], listed
        ):
            raise NetworkError(CHANGED)
        return parse_table_options(listed)
    except FetaError as error:
        raise NetworkError(f"{path}: {error}") from None


def _load(path: Path) -> Model:
    content = read_bytes(path)
    description, arrays = _parts(content)
    if description.get("version") != VERSION:
        message = (
            f"the file must have the format version {VERSION}, got {description.get('version')!r}; "
            "update FETA, or save the model again"
        )
        raise NetworkError(message)
    try:
        model = _model(description, arrays)
        changed = model.fingerprint != description["fingerprints"]["model"]
    except FetaError:
        raise
    except BROKEN as error:
        message = (
            f"the file must be a complete .feta model, but is damaged ({type(error).__name__}); "
            "save it again"
        )
        raise NetworkError(message) from None
    if changed:
        raise NetworkError(CHANGED)
    return model


def _parts(content: bytes) -> tuple[dict[str, Any], dict[str, Array]]:
    _, load, broken = _safetensors()
    try:
        arrays = dict(load(content))
        length = int.from_bytes(content[:8], "little")
        header = json.loads(content[8 : 8 + length])
        description = json.loads(header["__metadata__"][FORMAT])
    except (broken, *BROKEN):
        raise NetworkError("the file must be a .feta model written by feta.save_model") from None
    if not isinstance(description, dict):
        raise NetworkError("the file must be a .feta model written by feta.save_model")
    return description, arrays


def _safetensors() -> tuple[Callable[..., bytes], Callable[[bytes], Any], type[Exception]]:
    from safetensors import SafetensorError  # noqa: PLC0415 - only where a file is touched
    from safetensors.numpy import load, save  # noqa: PLC0415 - only where a file is touched

    return save, load, SafetensorError


def _arrays(network: Network) -> dict[str, Array]:
    first = network.first
    arrays = {
        "first.bias": first.bias,
        "first.slopes": first.slopes,
        "first.folded": first.cancelled_magnitude,
    }
    for index, table in enumerate(first.tables):
        arrays |= {f"table{index}.numbers": table.numbers, f"table{index}.rows": table.rows}
    for index, (activation, layer) in enumerate(network.steps):
        for field in ("breaks", "slopes", "intercepts"):
            arrays[f"layer{index}.{field}"] = getattr(activation, field)
        arrays[f"layer{index}.weight"] = layer.weight
        arrays[f"layer{index}.bias"] = layer.bias
        arrays[f"layer{index}.folded"] = layer.cancelled_magnitude
    return {name: np.ascontiguousarray(array) for name, array in arrays.items()}


def _description(model: Model) -> dict[str, Any]:
    network = model.network
    return {
        "version": VERSION,
        "space": [{"kind": a.kind} | _entry(a) for a in model.space.attributes],
        "rule": {"kind": type(model.rule).__name__} | asdict(model.rule),
        "outcomes": list(model.outcomes),
        "network": {
            "equality": network.equality,
            "source": network.source,
            "sigmoid": network.sigmoid,
            "reading": network.provenance,
            "tables": [table.column for table in network.first.tables],
            "activations": [activation.name for activation in network.activations],
            "measured": _measured(network),
        },
        "fingerprints": {
            "space": model.space.fingerprint,
            "network": network.fingerprint,
            "model": model.fingerprint,
            "measured": _digest(model.fingerprint, _measured(network)),
        },
    }


def _measured(network: Network) -> dict[str, Any] | None:
    """Describe which columns hold beyond their limits; None where all do."""
    if network.measured is None:
        return None
    spans = [list(one) for one in network.measured.spans]
    return {"spans": spans, "largest": network.measured.largest}


def _digest(fingerprint: str, measured: object) -> str:
    """Guard what the model's own fingerprint leaves out, as files of older versions lack it."""
    return hashlib.sha256(f"{fingerprint}\n{json.dumps(measured)}".encode()).hexdigest()


def _read_measured(description: dict[str, Any]) -> Measured | None:
    """Read which columns hold beyond their limits; files of older versions do not say: none."""
    about = description["network"]
    if "measured" not in about:
        return Measured()
    expected = _digest(description["fingerprints"]["model"], about["measured"])
    if description["fingerprints"].get("measured") != expected:
        raise NetworkError(CHANGED)
    if about["measured"] is None:
        return None
    return Measured(_tupled(about["measured"]["spans"]), float(about["measured"]["largest"]))


def _model(description: dict[str, Any], arrays: dict[str, Array]) -> Model:
    if any(array.dtype != np.float64 for array in arrays.values()):
        raise NetworkError("the file's arrays must be float64")
    about = description["network"]
    tables = tuple(
        LookupTable(int(column), arrays[f"table{index}.numbers"], arrays[f"table{index}.rows"])
        for index, column in enumerate(about["tables"])
    )
    first = Columns(arrays["first.bias"], arrays["first.slopes"], tables, arrays["first.folded"])
    indices = range(len(about["activations"]))
    activations = tuple(
        Activation(
            name, *(arrays[f"layer{index}.{field}"] for field in ("breaks", "slopes", "intercepts"))
        )
        for index, name in enumerate(about["activations"])
    )
    layers = tuple(
        Affine(*(arrays[f"layer{index}.{field}"] for field in ("weight", "bias", "folded")))
        for index in indices
    )
    network = Network(
        first,
        activations,
        layers,
        about["equality"],
        about["source"],
        bool(about["sigmoid"]),
        about.get("reading", "proved"),
        _read_measured(description),
    )
    outcomes = tuple(description["outcomes"])
    if not all(isinstance(name, str) for name in outcomes):
        raise NetworkError(f"the file's outcomes must be texts, got {outcomes!r}")
    space = FeatureSpace(tuple(_attribute(entry) for entry in description["space"]))
    return Model(space, network, _rule(description["rule"]), outcomes=outcomes)


def _rule(entry: dict[str, Any]) -> Rule:
    kind = RULES[entry["kind"]]
    return kind(**{field.name: _tupled(entry[field.name]) for field in fields(kind)})


def _attribute(entry: dict[str, Any]) -> Attribute:
    kind = ATTRIBUTES[entry["kind"]]
    # Older files lack the fields that were added later.
    known = [one.name for one in fields(kind) if one.name in entry or one.default is MISSING]
    return kind(**{name: _tupled(entry[name]) for name in known})


def _entry(attribute: Attribute) -> dict[str, Any]:
    entry = asdict(attribute)
    return {name: value for name, value in entry.items() if name != "strict" or value}


def _tupled(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    return tuple(_tupled(one) for one in value) if isinstance(value, list) else value
