"""Schema files as TOML text, one line per column."""

from collections.abc import Mapping, Sequence
from typing import assert_never

from feta.io.relation_section import relation_lines
from feta.io.sanitize import plain
from feta.io.schema_file import Decision, SchemaFile
from feta.io.table_options import TableOptions
from feta.io.table_section import options_json
from feta.io.toml_text import toml, toml_key
from feta.io.votes_section import votes_json
from feta.space.attribute import Attribute, Categorical, Derived, Integer, Levels, Real
from feta.vote.settings import VoteSettings


def format_schema(
    schema: SchemaFile,
    *,
    comments: Sequence[str] = (),
    column_comments: Mapping[str, Sequence[str]] | None = None,
) -> str:
    """Return a schema as TOML, with comments about its decision and above its columns."""
    lines = ["[decision]", *(f"# {comment}" for comment in comments)]
    lines += [
        *_decision_lines(schema.decision),
        *_table_lines(schema.table),
        *_votes_lines(schema.votes),
    ]
    lines += [
        "",
        "[columns]                  # a network reads them in this order, a pipeline by name",
    ]
    for attribute in schema.space.attributes:
        doubts = (column_comments or {}).get(attribute.name, ())
        lines += [f"# {plain(doubt)}" for doubt in doubts]
        pairs = _attribute_pairs(attribute) | _scaling_pairs(attribute.name, schema)
        lines.append(_column_line(attribute.name, pairs))
    lines += relation_lines(schema.relation)
    return "\n".join(lines) + "\n"


def column_line(attribute: Attribute) -> str:
    """Return the line of [columns] that declares an attribute."""
    return _column_line(attribute.name, _attribute_pairs(attribute))


def _column_line(name: str, pairs: dict[str, object]) -> str:
    return f"{toml_key(name)} = {toml(pairs)}"


def _decision_lines(decision: Decision) -> list[str]:
    if decision.classes:
        lines = [f"classes = {toml(list(decision.classes))}            # one per network output"]
        if decision.one_vs_rest is not None:
            lines.append(f"one_vs_rest = {toml(decision.one_vs_rest)}")
        return lines
    if decision.tolerance is not None:
        lines = [f"tolerance = {toml(decision.tolerance)}            # largest span of scores"]
        return lines + ([f"unit = {toml(decision.unit)}"] if decision.unit else [])
    lines = [f"favorable = {toml(decision.favorable)}"]
    lines.append(f"unfavorable = {toml(decision.unfavorable)}")
    if decision.score is not None:
        lines.append(f"score = {toml(decision.score)}")
    else:
        probability = 0.5 if decision.probability is None else decision.probability
        lines.append(f"threshold = {toml(probability)}            # probability")
    if decision.favors is not None:
        lines.append(f"favors = {toml(decision.favors)}")
    if decision.equality is not None:
        lines.append(f"equality = {toml(decision.equality)}")
    return lines


def _table_lines(options: TableOptions) -> list[str]:
    """Return the lines of [table]; none if all options have pandas' defaults."""
    changed = options_json(options)
    if not changed:
        return []
    lines = [f"{name} = {toml(value)}" for name, value in changed.items()]
    return ["", "[table]                    # how pandas reads the CSV file", *lines]


def _votes_lines(settings: VoteSettings | None) -> list[str]:
    """Return the lines of [votes]; none if nothing is set."""
    if settings is None:
        return []
    lines = [f"{name} = {toml(value)}" for name, value in votes_json(settings).items()]
    return ["", "[votes]                    # settings of fair decisions", *lines]


def _scaling_pairs(name: str, schema: SchemaFile) -> dict[str, object]:
    """Return the keys of a column for its unit and scaling."""
    pairs: dict[str, object] = {}
    if name in schema.units:
        pairs["unit"] = schema.units[name]
    if schema.centers.get(name, 0.0) != 0.0 or schema.scales.get(name, 1.0) != 1.0:
        pairs |= {"center": schema.centers[name], "scale": schema.scales[name]}
    return pairs


def _attribute_pairs(attribute: Attribute) -> dict[str, object]:
    """Return the keys of a column for its domain."""
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
