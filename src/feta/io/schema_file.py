"""Schema file: a space and its decision rule to and from TOML, as people write and read it."""

import math
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, assert_never

from feta.errors import SchemaError, one_of
from feta.io.table_options import TableOptions
from feta.io.table_section import parse_table_options, table_lines
from feta.io.toml_text import toml, toml_key
from feta.space.attribute import Attribute, Categorical, Derived, Integer, Levels, Real
from feta.space.feature_space import FeatureSpace

Entry = Mapping[str, Any]

_NUMBER_KEYS = {"unit", "sensitive", "missing", "strict", "center", "scale"}
_KEYS = {
    "category": {"type", "values", "sensitive", "missing", "other"},
    "integer": {"type", "min", "max", *_NUMBER_KEYS},
    "number": {"type", "min", "max", "step", *_NUMBER_KEYS},
    "levels": {"type", "values", *_NUMBER_KEYS},
}
# A schema names columns and values; a larger file is something else.
LARGEST_SCHEMA = 16 * 2**20

# Levels that a step may make: more than any measure of people has, and few enough to list.
MAX_LEVELS = 2**20

_DERIVED_KEYS = {"from", "values"}
_DECISION = "\0decision"  # no column's name
LARGEST_NUMBER = int(sys.float_info.max)

# Which keys of [decision] go with the one that says what kind of decision it is.
_TWO_WAY = {"favorable", "unfavorable", "favors", "equality"}
_COMPANIONS = {
    "threshold": _TWO_WAY,
    "score": _TWO_WAY,
    "classes": {"one_vs_rest"},
    "tolerance": {"unit"},
}
_DECISION_KEYS = {*_COMPANIONS, *_TWO_WAY, "one_vs_rest", "unit"}


@dataclass(frozen=True, slots=True)
class Decision:
    """The [decision] table: what the decisions are called and where they part, or a tolerance."""

    favorable: str = "favorable"
    unfavorable: str = "unfavorable"
    probability: float | None = None  # or
    score: float | None = None
    favors: str = "above"
    equality: str | None = None
    classes: tuple[str, ...] = ()  # or: several decisions, in the order of the network's outputs
    one_vs_rest: str | None = None  # the one of them to ask about
    tolerance: float | None = None  # or: regression
    unit: str = ""  # of its scores


@dataclass(frozen=True, slots=True)
class SchemaFile:
    """The content of a schema file: attributes, scaling, decision and table options."""

    space: FeatureSpace
    centers: dict[str, float]
    scales: dict[str, float]
    units: dict[str, str]
    decision: Decision
    table: TableOptions = field(default_factory=TableOptions)


def parse_schema(text: str) -> SchemaFile:
    """Read a schema from TOML text."""
    try:
        content = tomllib.loads(text)
    except ValueError as error:  # also integers of thousands of digits
        raise SchemaError(f"the schema must be TOML: {error}") from None
    except RecursionError:
        raise SchemaError("the schema must be TOML, but is nested too deeply") from None
    _check_keys("the schema", content, {"decision", "columns", "table"})
    columns = content.get("columns")
    if not isinstance(columns, dict) or not columns:
        raise SchemaError("the schema must have a [columns] table with at least one column")
    for name, entry in columns.items():
        if not isinstance(entry, dict):
            raise SchemaError(
                f"column {name!r} must be a table such as "
                '{ type = "integer", min = 0, max = 9 }, '
                f"got {entry!r}"
            )
    attributes = tuple(_attribute(name, entry) for name, entry in columns.items())
    _check_sources(attributes)
    return SchemaFile(
        FeatureSpace(attributes),
        {name: _center(name, entry) for name, entry in columns.items()},
        {name: _scale(name, entry) for name, entry in columns.items()},
        {name: str(entry["unit"]) for name, entry in columns.items() if "unit" in entry},
        _decision(content.get("decision", {})),
        parse_table_options(content.get("table", {})),
    )


def read_schema_file(path: str | Path) -> SchemaFile:
    """Read a schema from a TOML file; messages name the file."""
    if not Path(path).exists():
        raise SchemaError(f"{path}: there is no such file; feta init writes a first schema")
    if not Path(path).is_file():
        raise SchemaError(f"{path}: there must be a regular file here, got a folder or a device")
    if Path(path).stat().st_size > LARGEST_SCHEMA:
        raise SchemaError(f"{path}: the schema must have at most {LARGEST_SCHEMA // 2**20} MB")
    try:
        text = Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise SchemaError(f"{path}: the schema must be UTF-8 text") from None
    try:
        return parse_schema(text)
    except SchemaError as error:
        raise SchemaError(f"{path}: {error}") from None


def format_schema(schema: SchemaFile) -> str:
    """Write a schema as TOML, one line per column."""
    lines = ["[decision]", *_decision_lines(schema.decision), *table_lines(schema.table)]
    lines += [
        "",
        "[columns]                  # a network takes them in this order, a pipeline by name",
    ]
    lines += [_line(attribute, schema) for attribute in schema.space.attributes]
    return "\n".join(lines) + "\n"


def column_line(attribute: Attribute) -> str:
    """Write the line of [columns] that declares an attribute."""
    return _line(attribute, None)


def _line(attribute: Attribute, schema: SchemaFile | None) -> str:
    pairs = _pairs(attribute) | ({} if schema is None else _scaling(attribute.name, schema))
    inside = ", ".join(f"{key} = {toml(value)}" for key, value in pairs.items())
    return f"{toml_key(attribute.name)} = {{ {inside} }}"


def _decision_lines(decision: Decision) -> list[str]:
    if decision.classes:
        lines = [f"classes = {toml(list(decision.classes))}            # one a network output"]
        if decision.one_vs_rest is not None:
            lines.append(f"one_vs_rest = {toml(decision.one_vs_rest)}")
        return lines
    if decision.tolerance is not None:
        lines = [f"tolerance = {toml(decision.tolerance)}            # of a score"]
        return lines + ([f"unit = {toml(decision.unit)}"] if decision.unit else [])
    lines = [f"favorable = {toml(decision.favorable)}"]
    lines.append(f"unfavorable = {toml(decision.unfavorable)}")
    if decision.score is not None:
        lines.append(f"score = {toml(decision.score)}")
    else:
        probability = 0.5 if decision.probability is None else decision.probability
        lines.append(f"threshold = {toml(probability)}            # probability")
    if decision.favors != "above":
        lines.append(f"favors = {toml(decision.favors)}")
    if decision.equality is not None:
        lines.append(f"equality = {toml(decision.equality)}")
    return lines


def _scaling(name: str, schema: SchemaFile) -> dict[str, object]:
    """List a column's unit and scaling."""
    pairs: dict[str, object] = {}
    if name in schema.units:
        pairs["unit"] = schema.units[name]
    if schema.centers.get(name, 0.0) != 0.0 or schema.scales.get(name, 1.0) != 1.0:
        pairs |= {"center": schema.centers[name], "scale": schema.scales[name]}
    return pairs


def _pairs(attribute: Attribute) -> dict[str, object]:
    pairs: dict[str, object]
    match attribute:
        case Derived():
            bands = {label: [low, high] for label, low, high in attribute.bands}
            return {"from": attribute.source, "values": bands}
        case Categorical():
            pairs = {"type": "category", "values": list(attribute.values)}
        case Levels():
            pairs = {"type": "levels", "values": list(attribute.numbers)}
        case Integer():
            pairs = {"type": "integer", "min": attribute.low, "max": attribute.high}
        case Real():
            pairs = {"type": "number", "min": attribute.low, "max": attribute.high}
        case _:
            assert_never(attribute)
    flags = ("sensitive", "missing", "strict", "other")
    pairs |= {key: True for key in flags if getattr(attribute, key, False)}
    return pairs


def _attribute(name: str, entry: Entry) -> Attribute:
    if "from" in entry:
        _check_keys(f"derived column {name!r}", entry, _DERIVED_KEYS)
        return Derived(name, str(entry["from"]), _bands(name, entry.get("values")))
    kind = entry.get("type")
    if not isinstance(kind, str) or kind not in _KEYS:
        raise SchemaError(f"column {name!r}: type must be {one_of(kind, _KEYS)}")
    _check_keys(f"column {name!r}", entry, _KEYS[kind])
    sensitive, missing, strict = (
        _flag(name, entry, key) for key in ("sensitive", "missing", "strict")
    )
    if kind == "category":
        other = _flag(name, entry, "other")
        return Categorical(name, tuple(_list(name, entry)), sensitive, missing, other)
    if kind == "levels":
        return Levels(
            name,
            tuple(float(_checked(name, "values", one)) for one in _list(name, entry)),
            sensitive,
            missing,
            strict,
        )
    attribute = _interval(name, entry, kind, sensitive=sensitive, missing=missing)
    return replace(attribute, strict=strict)


def _flag(name: str, entry: Entry, key: str) -> bool:
    flag = entry.get(key, False)
    if not isinstance(flag, bool):
        raise SchemaError(f"column {name!r}: {key} must be true or false, got {flag!r}")
    return flag


def _interval(
    name: str, entry: Entry, kind: str, *, sensitive: bool, missing: bool
) -> Integer | Levels | Real:
    low, high = _limit(name, entry, "min"), _limit(name, entry, "max")
    if kind == "integer":
        for key, limit in (("min", low), ("max", high)):
            if not math.isfinite(limit):
                raise SchemaError(f"column {name!r}: {key} must be an integer, got {limit!r}")
        return Integer(name, low, high, sensitive, missing)  # type: ignore[arg-type]  # checked there
    if "step" in entry:
        step = float(_checked(name, "step", entry["step"]))
        if step > 0 and (high - low) / MAX_LEVELS > step:
            message = (
                f"column {name!r}: a step must make at most {MAX_LEVELS:,} levels, got {step:g} "
                f"from {low:g} to {high:g}; take a larger step"
            )
            raise SchemaError(message)
        return Levels.spaced(name, low, high, step=step, sensitive=sensitive, missing=missing)
    return Real(name, low, high, sensitive, missing)


def _check_sources(attributes: tuple[Attribute, ...]) -> None:
    """Refuse bands of a column with so many values that checking each would not end."""
    wide = {a.name for a in attributes if isinstance(a, Integer) and a.n_values > 2**30}
    for attribute in attributes:
        if isinstance(attribute, Derived) and attribute.source in wide:
            message = (
                f"derived column {attribute.name!r}: {attribute.source!r} must have at most 2^30 "
                "values; narrow its min and max"
            )
            raise SchemaError(message)


def _bands(name: str, values: object) -> tuple[tuple[str, float, float], ...]:
    if not isinstance(values, dict):
        raise SchemaError(
            f'derived column {name!r}: values must name its bands, such as {{ "19-25" = [19, 25] }}'
        )
    bands = []
    for label, limits in values.items():
        if not isinstance(limits, list) or len(limits) != 2:  # noqa: PLR2004 - low and high
            raise SchemaError(
                f"derived column {name!r}: band {label!r} must be [low, high], got {limits!r}"
            )
        low, high = (float(_checked(name, "values", limit)) for limit in limits)
        bands.append((str(label), low, high))
    return tuple(bands)


def _decision(entry: object) -> Decision:
    if not isinstance(entry, dict):
        raise SchemaError(f"[decision] must be a table, got {entry!r}")
    _check_keys("[decision]", entry, _DECISION_KEYS)
    _check_companions(entry)
    return Decision(
        favorable=str(entry.get("favorable", "favorable")),
        unfavorable=str(entry.get("unfavorable", "unfavorable")),
        probability=_optional("threshold", entry),
        score=_optional("score", entry),
        favors=str(entry.get("favors", "above")),
        equality=entry.get("equality"),
        classes=_classes(entry.get("classes")),
        one_vs_rest=None if "one_vs_rest" not in entry else str(entry["one_vs_rest"]),
        tolerance=_optional("tolerance", entry),
        unit=str(entry.get("unit", "")),
    )


def _check_companions(entry: Entry) -> None:
    """Refuse keys that do not go together; without a kind, two decisions are meant."""
    kinds = [key for key in _COMPANIONS if key in entry]
    if len(kinds) > 1:
        message = (
            "[decision] must have one of threshold (a probability), score, classes and "
            f"tolerance, got {' and '.join(kinds)}"
        )
        raise SchemaError(message)
    kind = kinds[0] if kinds else "threshold"
    for key in entry:
        if key != kind and key not in _COMPANIONS[kind]:
            homes = " or ".join(one for one, keys in _COMPANIONS.items() if key in keys)
            hint = "; one_vs_rest asks about one class" if kind == "classes" else ""
            raise SchemaError(f"[decision]: {key!r} goes with {homes}, got it with {kind}{hint}")


def _classes(names: object) -> tuple[str, ...]:
    if names is None:
        return ()
    if not isinstance(names, list) or not names or not all(isinstance(one, str) for one in names):
        message = (
            f"[decision]: classes must be a list of names, one a network output, got {names!r}"
        )
        raise SchemaError(message)
    return tuple(names)


def _optional(key: str, entry: Entry) -> float | None:
    return float(_checked(_DECISION, key, entry[key])) if key in entry else None


def _list(name: str, entry: Entry) -> list[Any]:
    values = entry.get("values")
    if not isinstance(values, list):
        raise SchemaError(f"column {name!r}: values must be a list, got {values!r}")
    return values


def _limit(name: str, entry: Entry, key: str) -> float:
    if key not in entry:
        raise SchemaError(f"column {name!r} must have a {key}")
    return _checked(name, key, entry[key])


def _number(name: str, entry: Entry, key: str, default: float) -> float:
    return float(_checked(name, key, entry[key])) if key in entry else default


def _center(name: str, entry: Entry) -> float:
    center = _number(name, entry, "center", 0.0)
    if not math.isfinite(center):
        raise SchemaError(f"column {name!r}: center must be finite, got {center!r}")
    return center


def _scale(name: str, entry: Entry) -> float:
    scale = _number(name, entry, "scale", 1.0)
    if scale == 0 or not math.isfinite(scale):
        raise SchemaError(f"column {name!r}: scale must be finite and not 0, got {scale!r}")
    return scale


def _checked(name: str, key: str, value: Any) -> Any:  # noqa: ANN401 - any TOML value
    where = "[decision]" if name == _DECISION else f"column {name!r}"
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise SchemaError(f"{where}: {key} must be a number, got {value!r}")
    if isinstance(value, int) and abs(value) > LARGEST_NUMBER:
        raise SchemaError(
            f"{where}: {key} must be a number that float64 can hold, got a larger one"
        )
    return value if abs(value) < 2**63 else float(value)  # numpy takes larger ones for objects


def _check_keys(where: str, entry: Entry, known: set[str]) -> None:
    for key in entry:
        if key not in known:
            raise SchemaError(f"{where}: a key must be {one_of(key, sorted(known))}")
