"""The sections of a schema file that say who is a counterpart of whom."""

from collections.abc import Mapping
from typing import Any

from feta.errors import SchemaError, unknown_choice
from feta.io.toml_text import toml, toml_key
from feta.relation.all_sensitive_values import AllSensitiveValues
from feta.relation.consequences import OUTSIDE, Consequences
from feta.relation.constrained import IF_NONE, Constrained
from feta.relation.constraints import read_constraints
from feta.relation.effects import read_equations
from feta.relation.protocol import Relation
from feta.relation.similar import Similar
from feta.space.feature_space import FeatureSpace

SECTIONS = ("consequences", "constraints", "relation", "similar")

KINDS = ("consequences", "constrained", "similar")

CONSEQUENCES_KEYS = ("equations", "outside")


def parse_relation(content: Mapping[str, Any], space: FeatureSpace) -> Relation | None:
    """Read the sections; None if there are none, which means the default relation."""
    options = content.get("relation", {})
    if not isinstance(options, dict):
        raise SchemaError(
            f'[relation] is not a table: got {options!r}; expected settings such as if_none = "all"'
        )
    for key in options:
        if key != "if_none":
            raise SchemaError(f"[relation]: unknown key: {unknown_choice(key, ['if_none'])}")
    if "consequences" in content:
        others = [key for key in ("constraints", "similar", "relation") if key in content]
        if others:
            raise SchemaError(
                f"[consequences] and {others[0]}: got both; expected one relation; remove one"
            )
        return _consequences(content["consequences"], space)
    if "similar" in content:
        if "constraints" in content or options:
            raise SchemaError(
                "[similar] and [[constraints]]: got both; expected one relation; remove one"
            )
        return _similar(content["similar"], space)
    return _constrained(content, options, space)


def _constrained(
    content: Mapping[str, Any], options: Mapping[str, Any], space: FeatureSpace
) -> Relation | None:
    if "constraints" not in content:
        if options:
            raise SchemaError(
                "[relation]: if_none needs [[constraints]]: got none; remove [relation]"
            )
        return None
    if_none = options.get("if_none", "refuse")
    if if_none not in IF_NONE:
        raise SchemaError(f"[relation]: invalid if_none: {unknown_choice(if_none, IF_NONE)}")
    constraints = read_constraints(content["constraints"], space.attributes)
    if not constraints:
        raise SchemaError("[[constraints]] is empty: expected one or more entries; remove it")
    relation = Constrained(constraints, if_none)
    relation.check(space)
    return relation


def _similar(section: object, space: FeatureSpace) -> Similar:
    if not isinstance(section, dict):
        raise SchemaError(
            f"[similar] is not a table: got {section!r}; expected distances such as income = 500"
        )
    try:
        relation = Similar(section)
        relation.check(space)
    except SchemaError as error:
        raise SchemaError(f"[similar]: {error}") from None
    return relation


def _consequences(section: object, space: FeatureSpace) -> Consequences:
    if not isinstance(section, dict):
        raise SchemaError(
            f"[consequences] is not a table: got {section!r}; expected [[consequences.equations]]"
        )
    try:
        for key in section:
            if key not in CONSEQUENCES_KEYS:
                raise SchemaError(f"unknown key: {unknown_choice(key, CONSEQUENCES_KEYS)}")
        outside = section.get("outside", "leave out")
        if outside not in OUTSIDE:
            raise SchemaError(f"invalid outside: {unknown_choice(outside, OUTSIDE)}")
        equations = read_equations(section.get("equations", []), space.attributes)
        relation = Consequences(equations, outside)
        relation.check(space)
    except SchemaError as error:
        raise SchemaError(f"[consequences]: {error}") from None
    return relation


def build_relation(stored: Mapping[str, Any], space: FeatureSpace) -> Relation:
    """Return the relation that a file stores (`Relation.stored`); by default, the default one."""
    if not stored:
        return AllSensitiveValues(space)
    if stored.get("kind") == "similar":
        return Similar(stored["similar"])
    if stored.get("kind") == "consequences":
        equations = read_equations(stored["equations"], space.attributes)
        return Consequences(equations, stored["outside"])
    if stored.get("kind") != "constrained":
        problem = unknown_choice(stored.get("kind"), KINDS)
        raise SchemaError(f"unknown relation in the file: {problem}; update FETA")
    constraints = read_constraints(stored["constraints"], space.attributes)
    return Constrained(constraints, stored["if_none"])


def relation_lines(relation: Relation | None) -> list[str]:
    """Return the sections as TOML; none for the default relation."""
    stored = {} if relation is None else relation.stored
    if stored is None:
        raise SchemaError(
            f"a schema cannot store this relation: got {type(relation).__name__}; expected one of "
            "FETA"
        )
    lines: list[str] = []
    if "similar" in stored:
        pairs = stored["similar"].items()
        lines += ["", "[similar]", *(f"{toml_key(name)} = {toml(size)}" for name, size in pairs)]
    if "equations" in stored:
        if stored["outside"] != "leave out":
            lines += ["", "[consequences]", f"outside = {toml(stored['outside'])}"]
        for entry in stored["equations"]:
            lines += ["", *equation_lines(entry)]
    if stored.get("if_none", "refuse") != "refuse":
        lines += ["", "[relation]", f"if_none = {toml(stored['if_none'])}"]
    for entry in stored.get("constraints", []):
        lines += ["", *constraint_lines(entry)]
    return lines


def constraint_lines(entry: Mapping[str, Any]) -> list[str]:
    """Return one entry of [[constraints]] as TOML, one line per combination."""
    lines = ["[[constraints]]"]
    for key, value in entry.items():
        if key == "seen":
            rows = [f"    {toml(dict(row))}," for row in value]
            lines += ["seen = [", *rows, "]"]
        else:
            lines.append(f"{toml_key(key)} = {toml(_plain(value))}")
    return lines


def equation_lines(entry: Mapping[str, Any]) -> list[str]:
    """Return one equation as TOML: one line per parent, row or group."""
    lines = ["[[consequences.equations]]", f"column = {toml(entry['column'])}"]
    for key in ("shifts", "slopes"):
        for name, amounts in entry.get(key, {}).items():
            lines.append(f"{key}.{toml_key(name)} = {toml(_plain(amounts))}")
    for table in entry.get("tables", []):
        columns = toml(list(table["columns"]))
        lines += ["[[consequences.equations.tables]]", f"columns = {columns}"]
        lines += ["rows = [", *(f"    {toml(list(row))}," for row in table["rows"]), "]"]
    for key in ("bands", "quantiles"):
        for group in entry.get(key, []):
            parts = {name: _plain(part) for name, part in group.items()}
            lines.append(f"[[consequences.equations.{key}]]")
            lines += [f"{name} = {toml(part)}" for name, part in parts.items()]
    return lines


def _plain(value: Any) -> Any:  # noqa: ANN401 - any TOML value
    return dict(value) if isinstance(value, Mapping) else value
