"""Model files: one model per `.feta` file, without pickle; loading checks fingerprints.

The format is safetensors. JSON in the metadata describes the space, the rule and the source of the
network.
"""

import hashlib
import json
from collections.abc import Callable
from dataclasses import MISSING, asdict, fields
from pathlib import Path
from typing import Any

import numpy as np

from feta.arrays import Array
from feta.errors import FetaError, NetworkError, SchemaError, unknown_choice
from feta.io.regular_file import atomic_write, read_bytes
from feta.io.table_options import TableOptions
from feta.io.table_section import options_json, parse_table_options
from feta.model import Model
from feta.rule import Argmax, OneVsRest, Rule, Threshold, Tolerance, rule_kind, rule_options
from feta.scorer.network.activation import Activation
from feta.scorer.network.layers import Affine, Columns, LookupTable, Measured
from feta.scorer.network.network import Network, network_of
from feta.space.attribute import Attribute, Categorical, Derived, Integer, Levels, Real
from feta.space.feature_space import FeatureSpace

FORMAT = "feta-model"
VERSION = 1

CHANGED = "the content of the file does not match its fingerprint; save it again"
NOT_A_MODEL = "the file is not a .feta model; expected a file written by feta.save_model"

# Exceptions that a damaged description may cause when the model is built.
DAMAGE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)

ATTRIBUTES: dict[str, type[Attribute]] = {
    kind.kind: kind for kind in (Categorical, Derived, Integer, Levels, Real)
}

RULES = {kind.__name__: kind for kind in (Argmax, OneVsRest, Threshold, Tolerance)}


def save_model(model: Model, path: str | Path, *, table: TableOptions | None = None) -> None:
    """Write a model to a `.feta` file; an existing file is replaced at once or not at all.

    `table` contains the options with which pandas reads the user's CSV files, like the `[table]`
    section of a schema.
    """
    save = _safetensors()[0]
    description = _describe_model(model)
    options = options_json(table or TableOptions())
    if options:
        description["table"] = options
        description["fingerprints"]["table"] = _digest(model.fingerprint, options)
    content = save(_list_arrays(network_of(model.scorer)), {FORMAT: json.dumps(description)})
    with atomic_write(Path(path)) as part:
        part.write_bytes(content)


def load_model(path: str | Path) -> Model:
    """Read a model from a `.feta` file."""
    try:
        return _load_model(Path(path))
    except FetaError as error:
        raise NetworkError(f"{path}: {error}") from None


def load_table_options(path: str | Path) -> TableOptions:
    """Read from a `.feta` file the options with which pandas reads the user's CSV files."""
    try:
        description, _ = _parse_content(read_bytes(Path(path)))
        options = description.get("table")
        if options is None:
            return TableOptions()
        fingerprints = description["fingerprints"]
        if fingerprints.get("table") != _digest(fingerprints["model"], options):
            raise NetworkError(CHANGED)
        return parse_table_options(options)
    except FetaError as error:
        raise NetworkError(f"{path}: {error}") from None


def _load_model(path: Path) -> Model:
    description, arrays = _parse_content(read_bytes(path))
    if description.get("version") != VERSION:
        raise NetworkError(
            f"unsupported format version: got {description.get('version')!r}; "
            f"expected {VERSION}; update FETA, or save the model again"
        )
    try:
        model = _build_model(description, arrays)
        changed = model.fingerprint != description["fingerprints"]["model"]
    except FetaError:
        raise
    except DAMAGE as error:
        raise NetworkError(
            f"the file is damaged: got {type(error).__name__}; "
            "expected a complete .feta model; save it again"
        ) from None
    if changed:
        raise NetworkError(CHANGED)
    return model


def _parse_content(content: bytes) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the description of a model and its arrays."""
    _, load, safetensors_error = _safetensors()
    try:
        arrays = dict(load(content))
        length = int.from_bytes(content[:8], "little")
        header = json.loads(content[8 : 8 + length])
        description = json.loads(header["__metadata__"][FORMAT])
    except (safetensors_error, *DAMAGE):
        raise NetworkError(NOT_A_MODEL) from None
    if not isinstance(description, dict):
        raise NetworkError(NOT_A_MODEL)
    return description, arrays


def _safetensors() -> tuple[Callable[..., bytes], Callable[[bytes], Any], type[Exception]]:
    from safetensors import SafetensorError  # noqa: PLC0415 - only for files
    from safetensors.numpy import load, save  # noqa: PLC0415 - only for files

    return save, load, SafetensorError


def _list_arrays(network: Network) -> dict[str, Array]:
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


def _describe_model(model: Model) -> dict[str, Any]:
    network = network_of(model.scorer)
    return {
        "version": VERSION,
        "space": [_describe_attribute(attribute) for attribute in model.space.attributes],
        "rule": _describe_rule(model.rule),
        "outcomes": list(model.outcomes),
        "network": {
            "equality": network.equality,
            "source": network.source,
            "sigmoid": network.sigmoid,
            "reading": network.provenance,
            "tables": [table.column for table in network.first.tables],
            "activations": [activation.name for activation in network.activations],
            "measured": _describe_measured(network),
        },
        "fingerprints": {
            "space": model.space.fingerprint,
            "network": network.fingerprint,
            "model": model.fingerprint,
            "measured": _digest(model.fingerprint, _describe_measured(network)),
        },
    }


def _describe_measured(network: Network) -> dict[str, Any] | None:
    """Describe the columns whose slopes hold beyond the limits; None if all do."""
    if network.measured is None:
        return None
    spans = [list(span) for span in network.measured.spans]
    return {"spans": spans, "largest": network.measured.largest}


def _digest(fingerprint: str, content: object) -> str:
    """Return a digest of content that the model's fingerprint omits.

    Files of older versions have no such content, and their fingerprints must remain valid.
    """
    return hashlib.sha256(f"{fingerprint}\n{json.dumps(content)}".encode()).hexdigest()


def _parse_measured(description: dict[str, Any]) -> Measured | None:
    """Read which columns hold beyond the limits; in files of older versions, none."""
    facts = description["network"]
    if "measured" not in facts:
        return Measured()
    expected = _digest(description["fingerprints"]["model"], facts["measured"])
    if description["fingerprints"].get("measured") != expected:
        raise NetworkError(CHANGED)
    if facts["measured"] is None:
        return None
    return Measured(_to_tuples(facts["measured"]["spans"]), float(facts["measured"]["largest"]))


def _build_model(description: dict[str, Any], arrays: dict[str, Array]) -> Model:
    for name, array in arrays.items():
        if array.dtype != np.float64:
            raise NetworkError(
                f"unsupported type of the array {name!r}: got {array.dtype}; expected float64"
            )
    network = _build_network(description, arrays)
    outcomes = tuple(description["outcomes"])
    if not all(isinstance(name, str) for name in outcomes):
        raise NetworkError(f"invalid outcomes in the file: got {outcomes!r}; expected texts")
    space = FeatureSpace(tuple(_build_attribute(entry) for entry in description["space"]))
    return Model(space, network, _build_rule(description["rule"]), outcomes=outcomes)


def _build_network(description: dict[str, Any], arrays: dict[str, Array]) -> Network:
    facts = description["network"]
    tables = tuple(
        LookupTable(int(column), arrays[f"table{index}.numbers"], arrays[f"table{index}.rows"])
        for index, column in enumerate(facts["tables"])
    )
    first = Columns(arrays["first.bias"], arrays["first.slopes"], tables, arrays["first.folded"])
    activations = tuple(
        Activation(
            name, *(arrays[f"layer{index}.{field}"] for field in ("breaks", "slopes", "intercepts"))
        )
        for index, name in enumerate(facts["activations"])
    )
    layers = tuple(
        Affine(*(arrays[f"layer{index}.{field}"] for field in ("weight", "bias", "folded")))
        for index in range(len(activations))
    )
    return Network(
        first,
        activations,
        layers,
        facts["equality"],
        facts["source"],
        bool(facts["sigmoid"]),
        facts.get("reading", "proved"),
        _parse_measured(description),
    )


def _describe_rule(rule: Rule) -> dict[str, object]:
    kind = rule_kind(rule)
    if kind not in RULES:
        raise SchemaError(f"a .feta file cannot store the rule: {unknown_choice(kind, RULES)}")
    return {"kind": kind} | rule_options(rule)


def _build_rule(entry: dict[str, Any]) -> Rule:
    kind = RULES[entry["kind"]]
    return kind(**{field.name: _to_tuples(entry[field.name]) for field in fields(kind)})


def _build_attribute(entry: dict[str, Any]) -> Attribute:
    kind = ATTRIBUTES[entry["kind"]]
    # Files of older versions lack the fields that were added later.
    names = [
        field.name for field in fields(kind) if field.name in entry or field.default is MISSING
    ]
    return kind(**{name: _to_tuples(entry[name]) for name in names})


def _describe_attribute(attribute: Attribute) -> dict[str, Any]:
    entry = {"kind": attribute.kind} | asdict(attribute)
    # Versions that do not know `strict` can read a file in which nothing is strict.
    return {name: value for name, value in entry.items() if name != "strict" or value}


def _to_tuples(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    return tuple(_to_tuples(item) for item in value) if isinstance(value, list) else value
