"""Schema files: attributes, scaling, decision and table options, read from TOML."""

import math
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from feta.errors import SchemaError, unknown_choice
from feta.io.regular_file import path_problem
from feta.io.relation_section import SECTIONS as RELATION_SECTIONS
from feta.io.relation_section import parse_relation
from feta.io.table_options import TableOptions
from feta.io.table_section import parse_table_options
from feta.io.votes_section import parse_votes
from feta.relation.protocol import Relation
from feta.space.attribute import Attribute, Categorical, Derived, Integer, Levels, Real
from feta.space.feature_space import FeatureSpace
from feta.vote.settings import VoteSettings

Entry = Mapping[str, Any]

# A schema contains names of columns and values; a larger file is something else.
LARGEST_SCHEMA = 16 * 2**20

# Levels that a step may define: enough for all measurements of people, and few enough to list.
MAX_LEVELS = 2**20

LARGEST_NUMBER = int(sys.float_info.max)

# The keys of a column, by its type.
NUMBER_KEYS = {"unit", "sensitive", "missing", "strict", "center", "scale"}
COLUMN_KEYS = {
    "category": {"type", "values", "sensitive", "missing", "other"},
    "integer": {"type", "min", "max", *NUMBER_KEYS},
    "number": {"type", "min", "max", "step", *NUMBER_KEYS},
    "levels": {"type", "values", *NUMBER_KEYS},
}
DERIVED_KEYS = {"from", "values"}

# The kinds of decisions, each with the keys of [decision] that it allows.
TWO_OUTCOMES_KEYS = {"favorable", "unfavorable", "favors", "equality"}
KIND_KEYS = {
    "threshold": TWO_OUTCOMES_KEYS,
    "score": TWO_OUTCOMES_KEYS,
    "classes": {"one_vs_rest"},
    "tolerance": {"unit"},
}
DECISION_KEYS = {*KIND_KEYS, *TWO_OUTCOMES_KEYS, "one_vs_rest", "unit"}


@dataclass(frozen=True, slots=True)
class Decision:
    """The [decision] section: a threshold with names for both sides, classes, or a tolerance."""

    favorable: str = "favorable"
    unfavorable: str = "unfavorable"
    probability: float | None = None  # the threshold as a probability, or
    score: float | None = None  # the threshold as a score
    favors: str | None = None  # the side of favorable scores: "above" if it is not stated
    equality: str | None = None
    classes: tuple[str, ...] = ()  # in the order of the network's outputs
    one_vs_rest: str | None = None  # the class whose decision is verified
    tolerance: float | None = None  # of a regression
    unit: str = ""  # of the scores of a regression


@dataclass(frozen=True, slots=True)
class SchemaFile:
    """The content of a schema file: attributes, scaling, decision, table and vote options."""

    space: FeatureSpace
    centers: dict[str, float]
    scales: dict[str, float]
    units: dict[str, str]
    decision: Decision
    table: TableOptions = field(default_factory=TableOptions)
    votes: VoteSettings | None = None  # of fair decisions; None: nothing is set
    relation: Relation | None = None  # who is a counterpart of whom; None: the default


def read_schema_file(path: str | Path) -> SchemaFile:
    """Read a schema from a TOML file; messages name the file."""
    try:
        return parse_schema(_read_text(Path(path)))
    except SchemaError as error:
        raise SchemaError(f"{path}: {error}") from None


def _read_text(path: Path) -> str:
    problem = path_problem(path)
    if problem:
        hint = "" if path.exists() else "; feta init writes a first schema"
        raise SchemaError(f"{problem}{hint}")
    size = path.stat().st_size
    if size > LARGEST_SCHEMA:
        raise SchemaError(
            f"the schema is too large: got {size // 2**20} MB; "
            f"expected at most {LARGEST_SCHEMA // 2**20} MB"
        )
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise SchemaError("the schema is not UTF-8 text; save it as UTF-8") from None


def parse_schema(text: str) -> SchemaFile:
    """Read a schema from TOML text."""
    try:
        content = tomllib.loads(text)
    except ValueError as error:  # also raised for integers of thousands of digits
        raise SchemaError(f"the schema is not valid TOML: {error}") from None
    except RecursionError:
        raise SchemaError("the schema is not valid TOML: it is nested too deeply") from None
    known = {"decision", "columns", "table", "votes", *RELATION_SECTIONS}
    _check_keys("the schema", content, known)
    columns = _parse_columns(content.get("columns"))
    attributes = tuple(_parse_attribute(name, entry) for name, entry in columns.items())
    _check_sources(attributes)
    space = FeatureSpace(attributes)
    return SchemaFile(
        space,
        {name: _parse_center(name, entry) for name, entry in columns.items()},
        {name: _parse_scale(name, entry) for name, entry in columns.items()},
        {name: str(entry["unit"]) for name, entry in columns.items() if "unit" in entry},
        _parse_decision(content.get("decision", {})),
        parse_table_options(content.get("table", {})),
        parse_votes(content.get("votes")),
        parse_relation(content, space),
    )


def _parse_columns(section: object) -> dict[str, Entry]:
    if not isinstance(section, dict) or not section:
        raise SchemaError("no columns: expected a [columns] table with at least one column")
    for name, entry in section.items():
        if not isinstance(entry, dict):
            raise SchemaError(
                f"column {name!r} is not a table: got {entry!r}; expected a table such as "
                '{ type = "integer", min = 0, max = 9 }'
            )
    return section


def _parse_attribute(name: str, entry: Entry) -> Attribute:
    if "from" in entry:
        _check_keys(f"derived column {name!r}", entry, DERIVED_KEYS)
        return Derived(name, str(entry["from"]), _parse_bands(name, entry.get("values")))
    where = f"column {name!r}"
    kind = entry.get("type")
    if not isinstance(kind, str) or kind not in COLUMN_KEYS:
        raise SchemaError(f"{where}: unknown type: {unknown_choice(kind, COLUMN_KEYS)}")
    _check_keys(where, entry, COLUMN_KEYS[kind])
    sensitive, missing, strict = (
        _parse_flag(where, entry, key) for key in ("sensitive", "missing", "strict")
    )
    if kind == "category":
        other = _parse_flag(where, entry, "other")
        return Categorical(name, tuple(_parse_values(where, entry)), sensitive, missing, other)
    if kind == "levels":
        values = _parse_values(where, entry)
        numbers = tuple(float(_check_number(where, "values", value)) for value in values)
        return Levels(name, numbers, sensitive, missing, strict)
    attribute = _parse_interval(name, entry, kind, sensitive=sensitive, missing=missing)
    return replace(attribute, strict=strict)


def _parse_interval(
    name: str, entry: Entry, kind: str, *, sensitive: bool, missing: bool
) -> Integer | Levels | Real:
    where = f"column {name!r}"
    low, high = (_parse_limit(where, entry, key) for key in ("min", "max"))
    if kind == "integer":
        for key, limit in (("min", low), ("max", high)):
            if not math.isfinite(limit):
                raise SchemaError(f"{where}: invalid {key}: got {limit!r}; expected an integer")
        return Integer(name, low, high, sensitive, missing)  # type: ignore[arg-type]  # checked there
    if "step" in entry:
        step = float(_check_number(where, "step", entry["step"]))
        if step > 0 and (high - low) / MAX_LEVELS > step:
            raise SchemaError(
                f"{where}: too many levels: got step {step:g} from {low:g} to {high:g}; "
                f"expected at most {MAX_LEVELS:,} levels; write a larger step"
            )
        return Levels.spaced(name, low, high, step=step, sensitive=sensitive, missing=missing)
    return Real(name, low, high, sensitive, missing)


def _parse_bands(name: str, values: object) -> tuple[tuple[str, float, float], ...]:
    where = f"derived column {name!r}"
    if not isinstance(values, dict):
        raise SchemaError(
            f"{where}: invalid values: got {values!r}; "
            'expected named bands such as { "19-25" = [19, 25] }'
        )
    bands = []
    for label, limits in values.items():
        if not isinstance(limits, list) or len(limits) != 2:  # noqa: PLR2004 - low and high
            raise SchemaError(
                f"{where}: invalid band {label!r}: got {limits!r}; expected [low, high]"
            )
        low, high = (float(_check_number(where, "values", limit)) for limit in limits)
        bands.append((str(label), low, high))
    return tuple(bands)


def _check_sources(attributes: tuple[Attribute, ...]) -> None:
    """Reject bands of a column with too many values to check each of them."""
    wide = {
        attribute.name: attribute.n_values
        for attribute in attributes
        if isinstance(attribute, Integer) and attribute.n_values > 2**30
    }
    for attribute in attributes:
        if isinstance(attribute, Derived) and attribute.source in wide:
            raise SchemaError(
                f"derived column {attribute.name!r}: too many values in {attribute.source!r}: "
                f"got {wide[attribute.source]:,}; expected at most 2^30; narrow its min and max"
            )


def _parse_decision(section: object) -> Decision:
    if not isinstance(section, dict):
        raise SchemaError(
            f'[decision] is not a table: got {section!r}; expected keys such as favorable = "yes"'
        )
    _check_keys("[decision]", section, DECISION_KEYS)
    _check_kind(section)
    return Decision(
        favorable=str(section.get("favorable", "favorable")),
        unfavorable=str(section.get("unfavorable", "unfavorable")),
        probability=_parse_optional("threshold", section),
        score=_parse_optional("score", section),
        favors=None if "favors" not in section else str(section["favors"]),
        equality=section.get("equality"),
        classes=_parse_classes(section.get("classes")),
        one_vs_rest=None if "one_vs_rest" not in section else str(section["one_vs_rest"]),
        tolerance=_parse_optional("tolerance", section),
        unit=str(section.get("unit", "")),
    )


def _check_kind(section: Entry) -> None:
    """Reject two kinds of decisions, and keys of another kind; the default is a threshold."""
    kinds = [key for key in KIND_KEYS if key in section]
    if len(kinds) > 1:
        raise SchemaError(
            f"[decision]: conflicting keys: got {' and '.join(kinds)}; expected one of threshold "
            "(a probability), score, classes and tolerance"
        )
    kind = kinds[0] if kinds else "threshold"
    for key in section:
        if key != kind and key not in KIND_KEYS[kind]:
            possible = " or ".join(name for name, keys in KIND_KEYS.items() if key in keys)
            hint = "; one_vs_rest selects one class" if kind == "classes" else ""
            raise SchemaError(
                f"[decision]: {key!r} does not apply: got it with {kind}; "
                f"expected it with {possible}{hint}"
            )


def _parse_classes(names: object) -> tuple[str, ...]:
    if names is None:
        return ()
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        raise SchemaError(
            f"[decision]: invalid classes: got {names!r}; "
            "expected a list of names, one per network output"
        )
    return tuple(names)


def _parse_optional(key: str, section: Entry) -> float | None:
    return float(_check_number("[decision]", key, section[key])) if key in section else None


def _parse_flag(where: str, entry: Entry, key: str) -> bool:
    flag = entry.get(key, False)
    if not isinstance(flag, bool):
        raise SchemaError(f"{where}: invalid {key}: got {flag!r}; expected true or false")
    return flag


def _parse_values(where: str, entry: Entry) -> list[Any]:
    values = entry.get("values")
    if not isinstance(values, list):
        raise SchemaError(f"{where}: invalid values: got {values!r}; expected a list")
    return values


def _parse_limit(where: str, entry: Entry, key: str) -> float:
    if key not in entry:
        raise SchemaError(f"{where}: {key} is missing; expected a number")
    return _check_number(where, key, entry[key])


def _parse_center(name: str, entry: Entry) -> float:
    where = f"column {name!r}"
    center = float(_check_number(where, "center", entry.get("center", 0.0)))
    if not math.isfinite(center):
        raise SchemaError(f"{where}: invalid center: got {center!r}; expected a finite number")
    return center


def _parse_scale(name: str, entry: Entry) -> float:
    where = f"column {name!r}"
    scale = float(_check_number(where, "scale", entry.get("scale", 1.0)))
    if scale == 0 or not math.isfinite(scale):
        raise SchemaError(
            f"{where}: invalid scale: got {scale!r}; expected a finite number other than 0"
        )
    return scale


def _check_number(where: str, key: str, value: Any) -> Any:  # noqa: ANN401 - any TOML value
    """Return a number in a type that numpy treats as a number; reject everything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise SchemaError(f"{where}: invalid {key}: got {value!r}; expected a number")
    if isinstance(value, int) and abs(value) > LARGEST_NUMBER:
        raise SchemaError(
            f"{where}: invalid {key}: got an integer of {value.bit_length()} bits; "
            "expected a number within the range of float64"
        )
    return value if abs(value) < 2**63 else float(value)  # numpy makes objects of larger integers


def _check_keys(where: str, entry: Entry, known: set[str]) -> None:
    for key in entry:
        if key not in known:
            raise SchemaError(f"{where}: unknown key: {unknown_choice(key, sorted(known))}")
