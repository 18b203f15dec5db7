"""Model files: one model per `.feta` file, without pickle; loading checks fingerprints.

The format is safetensors. JSON in the metadata describes the space, the rule and the source of the
scorer.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, asdict, fields
from pathlib import Path
from typing import Any

import numpy as np

from feta.arrays import Array
from feta.errors import FetaError, NetworkError, SchemaError, unknown_choice
from feta.io.ensemble_file import build_ensemble, describe_ensemble, ensemble_arrays
from feta.io.forest_file import build_forest, describe_forest, forest_arrays
from feta.io.regular_file import atomic_write, read_bytes
from feta.io.relation_section import build_relation
from feta.io.table_options import TableOptions
from feta.io.table_section import options_json, parse_table_options
from feta.io.votes_file import PREFIX, build_votes, describe_votes, votes_arrays
from feta.model import Model
from feta.rule import Argmax, OneVsRest, Rule, Threshold, Tolerance, rule_kind, rule_options
from feta.scorer.ensemble.ensemble import Ensemble
from feta.scorer.forest.forest import Forest
from feta.scorer.network.activation import Activation
from feta.scorer.network.layers import Affine, Columns, LookupTable, Measured
from feta.scorer.network.network import Network, any_network_of
from feta.scorer.network.smooth.activation import Smooth
from feta.scorer.protocol import Scorer
from feta.space.attribute import Attribute, Categorical, Derived, Integer, Levels, Real
from feta.space.feature_space import FeatureSpace
from feta.vote.stored_votes import Decider, StoredVotes

FORMAT = "feta-model"
# Networks have version 1. Version 2 has other scorers or votes; readers of version 1 refuse it.
VERSION, SCORER_VERSION = 1, 2

CHANGED = "the content of the file does not match its fingerprint; save it again"
NOT_A_MODEL = "the file is not a .feta model; expected a file written by feta.save_model"

# The arrays of a piecewise-linear activation.
PIECES = ("breaks", "slopes", "intercepts")

# Exceptions that a damaged description may cause when the model is built.
DAMAGE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)

ATTRIBUTES: dict[str, type[Attribute]] = {
    kind.kind: kind for kind in (Categorical, Derived, Integer, Levels, Real)
}

RULES = {kind.__name__: kind for kind in (Argmax, OneVsRest, Threshold, Tolerance)}


def save_model(
    model: Model | Decider, path: str | Path, *, table: TableOptions | None = None
) -> None:
    """Write a model to a `.feta` file; an existing file is replaced at once or not at all.

    With a `FairPredictor`, its votes are stored, too. `table` contains the options with which
    pandas reads the user's CSV files, like the `[table]` section of a schema.
    """
    content = model_bytes(model, table=table)
    with atomic_write(Path(path)) as part:
        part.write_bytes(content)


def model_bytes(model: Model | Decider, *, table: TableOptions | None = None) -> bytes:
    """Return the content of a `.feta` file; equal models have equal bytes."""
    save = _safetensors()[0]
    votes = StoredVotes()
    if not isinstance(model, Model):
        votes = model.stored_votes
        model = model.model
    description = _describe_model(model)
    options = options_json(table or TableOptions())
    if options:
        description["table"] = options
        description["fingerprints"]["table"] = _digest(model.fingerprint, options)
    arrays = _arrays_of(model.scorer)
    if not votes.is_default:
        arrays |= votes_arrays(votes)
        description["version"] = SCORER_VERSION
        description["votes"] = describe_votes(votes)
        description["fingerprints"]["votes"] = _votes_digest(description, arrays)
    return save(arrays, {FORMAT: json.dumps(description)})


def load_model(path: str | Path) -> Model:
    """Read a model from a `.feta` file."""
    try:
        return _model_of(*_parse_content(read_bytes(Path(path))))
    except FetaError as error:
        raise NetworkError(f"{path}: {error}") from None


def load_votes(path: str | Path) -> tuple[Model, StoredVotes]:
    """Read a model and its votes from a `.feta` file; without votes, those of a majority."""
    try:
        return votes_of_bytes(read_bytes(Path(path)))
    except FetaError as error:
        raise NetworkError(f"{path}: {error}") from None


def votes_of_bytes(content: bytes) -> tuple[Model, StoredVotes]:
    """Return the model and its votes of the content of a `.feta` file.

    Both belong to the same file, also where another process replaces it meanwhile.
    """
    description, arrays = _parse_content(content)
    model = _model_of(description, arrays)
    try:
        if "votes" not in description:
            return model, StoredVotes()
        if description["fingerprints"].get("votes") != _votes_digest(description, arrays):
            raise NetworkError(CHANGED)
        return model, build_votes(description["votes"], arrays, model.space)
    except FetaError:
        raise
    except DAMAGE as error:
        raise NetworkError(_damage(error)) from None


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


def _model_of(description: dict[str, Any], arrays: dict[str, Array]) -> Model:
    if description.get("version") not in (VERSION, SCORER_VERSION):
        raise NetworkError(
            f"unsupported format version: got {description.get('version')!r}; "
            f"expected {VERSION} or {SCORER_VERSION}; update FETA, or save the model again"
        )
    try:
        model = _build_model(description, arrays)
        changed = model.fingerprint != description["fingerprints"]["model"]
    except FetaError:
        raise
    except DAMAGE as error:
        raise NetworkError(_damage(error)) from None
    if changed:
        raise NetworkError(CHANGED)
    return model


def _damage(error: Exception) -> str:
    return (
        f"the file is damaged: got {type(error).__name__}; expected a complete .feta model; save "
        "it again"
    )


def _votes_digest(description: dict[str, Any], arrays: dict[str, Array]) -> str:
    """Return a digest of the votes, bound to the model."""
    content = {
        "votes": description["votes"],
        "arrays": {
            name: hashlib.sha256(array.tobytes()).hexdigest()
            for name, array in sorted(arrays.items())
            if name.startswith(PREFIX)
        },
    }
    return _digest(description["fingerprints"]["model"], content)


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
        for field, array in activation.numbers.items():
            if field != "function":  # the description has the name
                arrays[f"layer{index}.{field}"] = array
        arrays[f"layer{index}.weight"] = layer.weight
        arrays[f"layer{index}.bias"] = layer.bias
        arrays[f"layer{index}.folded"] = layer.cancelled_magnitude
    return {name: np.ascontiguousarray(array) for name, array in arrays.items()}


def _arrays_of(scorer: Scorer) -> dict[str, Array]:
    if isinstance(scorer, Ensemble):
        return ensemble_arrays(scorer, _arrays_of)
    if isinstance(scorer, Forest):
        return forest_arrays(scorer)
    return _list_arrays(any_network_of(scorer))


def _describe_model(model: Model) -> dict[str, Any]:
    scorer = model.scorer
    if scorer.provenance == "counted":
        raise SchemaError(
            f"a .feta file cannot store this model: got {scorer.description}; expected a model "
            "that FETA reads completely; keep the model's own file"
        )
    description = {
        "version": VERSION,
        "space": [describe_attribute(attribute) for attribute in model.space.attributes],
        "rule": describe_rule(model.rule),
        "outcomes": list(model.outcomes),
    }
    relation = _describe_relation(model)
    if relation:
        description["relation"] = relation
        description["version"] = SCORER_VERSION
    fingerprints = {"space": model.space.fingerprint, "model": model.fingerprint}
    if isinstance(scorer, Ensemble):
        facts = _describe_scorer(scorer)
        fingerprints["ensemble"] = _digest(model.fingerprint, facts)
        return description | facts | {"version": SCORER_VERSION, "fingerprints": fingerprints}
    if isinstance(scorer, Forest):
        forest = {"version": SCORER_VERSION, "forest": describe_forest(scorer)}
        return description | forest | {"fingerprints": fingerprints}
    network = any_network_of(scorer)
    if not network.piecewise_linear:
        description["version"] = SCORER_VERSION
    fingerprints = {
        "space": model.space.fingerprint,
        "network": network.fingerprint,
        "model": model.fingerprint,
        "measured": _digest(model.fingerprint, _describe_measured(network)),
    }
    return description | {"network": _describe_network(network), "fingerprints": fingerprints}


def _describe_relation(model: Model) -> dict[str, Any]:
    """Return what the relation stores; the fingerprint of the model includes it."""
    stored = model.relation.stored
    if stored is None:
        raise SchemaError(
            "a .feta file cannot store this model: got the relation "
            f"{type(model.relation).__name__}; expected one of FETA"
        )
    return stored


def _describe_scorer(scorer: Scorer) -> dict[str, Any]:
    if isinstance(scorer, Ensemble):
        return {"ensemble": describe_ensemble(scorer, _describe_scorer)}
    if isinstance(scorer, Forest):
        return {"forest": describe_forest(scorer)}
    return {"network": _describe_network(any_network_of(scorer))}


def _describe_network(network: Network) -> dict[str, Any]:
    # Versions that do not know links refuse the file by its fingerprint.
    link = {} if network.inverse_link is None else {"link": network.inverse_link}
    description = {
        "equality": network.equality,
        "source": network.source,
        "sigmoid": network.sigmoid,
        "reading": network.provenance,
        "tables": [table.column for table in network.first.tables],
        "activations": [activation.name for activation in network.activations],
        "measured": _describe_measured(network),
    }
    return description | link


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


def _check_measured(description: dict[str, Any]) -> None:
    """Raise if what the fingerprint of the model omits was changed."""
    fingerprints, facts = description["fingerprints"], description.get("network", {})
    if "measured" in facts:
        expected = _digest(fingerprints["model"], facts["measured"])
        if fingerprints.get("measured") != expected:
            raise NetworkError(CHANGED)
    if "ensemble" in description:
        expected = _digest(fingerprints["model"], {"ensemble": description["ensemble"]})
        if fingerprints.get("ensemble") != expected:
            raise NetworkError(CHANGED)


def _parse_measured(facts: dict[str, Any]) -> Measured | None:
    """Read which columns hold beyond the limits; in files of older versions, none."""
    if "measured" not in facts:
        return Measured()
    if facts["measured"] is None:
        return None
    return Measured(_to_tuples(facts["measured"]["spans"]), float(facts["measured"]["largest"]))


def _build_model(description: dict[str, Any], arrays: dict[str, Array]) -> Model:
    _check_measured(description)
    scorer = _build_scorer(description, arrays)
    outcomes = tuple(description["outcomes"])
    if not all(isinstance(name, str) for name in outcomes):
        raise NetworkError(f"invalid outcomes in the file: got {outcomes!r}; expected texts")
    space = FeatureSpace(tuple(_build_attribute(entry) for entry in description["space"]))
    relation = build_relation(description.get("relation", {}), space)
    rule = _build_rule(description["rule"])
    return Model(space, scorer, rule, outcomes=outcomes, relation=relation)


def _build_scorer(description: dict[str, Any], arrays: dict[str, Array]) -> Scorer:
    if "ensemble" in description:
        return build_ensemble(description["ensemble"], arrays, _build_scorer)
    if "forest" in description:
        return build_forest(description["forest"], arrays)
    for name, array in arrays.items():
        if name.startswith(PREFIX):
            continue
        if array.dtype != np.float64:
            raise NetworkError(
                f"unsupported type of the array {name!r}: got {array.dtype}; expected float64"
            )
    return _build_network(description, arrays)


def _build_network(description: dict[str, Any], arrays: dict[str, Array]) -> Network:
    facts = description["network"]
    tables = tuple(
        LookupTable(int(column), arrays[f"table{index}.numbers"], arrays[f"table{index}.rows"])
        for index, column in enumerate(facts["tables"])
    )
    first = Columns(arrays["first.bias"], arrays["first.slopes"], tables, arrays["first.folded"])
    activations = tuple(
        _build_activation(name, f"layer{index}.", arrays)
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
        _parse_measured(facts),
        facts.get("link"),
    )


def _build_activation(name: str, prefix: str, arrays: Mapping[str, Array]) -> Activation | Smooth:
    if f"{prefix}parameter" in arrays:
        parameter = float(arrays[f"{prefix}parameter"].item())
        return Smooth(name, parameter, arrays.get(f"{prefix}on"))
    return Activation(name, *(arrays[prefix + field] for field in PIECES))


def describe_rule(rule: Rule) -> dict[str, object]:
    """Return the kind and the options of a rule."""
    kind = rule_kind(rule)
    if kind not in RULES:
        raise SchemaError(f"a .feta file cannot store the rule: {unknown_choice(kind, RULES)}")
    return {"kind": kind} | rule_options(rule)


def _build_rule(entry: dict[str, Any]) -> Rule:
    kind = RULES[entry["kind"]]
    names = [field.name for field in fields(kind) if field.compare]  # as rule_options lists them
    return kind(**{name: _to_tuples(entry[name]) for name in names})


def _build_attribute(entry: dict[str, Any]) -> Attribute:
    kind = ATTRIBUTES[entry["kind"]]
    # Files of older versions lack the fields that were added later.
    names = [
        field.name for field in fields(kind) if field.name in entry or field.default is MISSING
    ]
    return kind(**{name: _to_tuples(entry[name]) for name in names})


def describe_attribute(attribute: Attribute) -> dict[str, Any]:
    """Return the kind and the fields of an attribute."""
    entry = {"kind": attribute.kind} | asdict(attribute)
    # Versions that do not know `strict` can read a file in which nothing is strict.
    return {name: value for name, value in entry.items() if name != "strict" or value}


def _to_tuples(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    return tuple(_to_tuples(item) for item in value) if isinstance(value, list) else value
