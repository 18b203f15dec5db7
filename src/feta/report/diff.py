"""Diff: what changed between two audits, from their audit.json and verdicts.csv."""

import csv
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from feta.errors import SchemaError
from feta.report.audit_json import FORMAT, VERSION

# Figures compared, in the order shown; shares are shown as per cent.
COUNTS = ("people", "fair", "unfair", "undecided", "not_audited", "runtime_sensitive")
SHARES = ("ce_rate", "flip_rate", "accuracy", "fair_accuracy")
OPEN = ("undecided", "not audited", "absent")  # verdicts that are no answer

Number = float | int | None


@dataclass(frozen=True, slots=True)
class Audited:
    """An audit read back: what audit.json says, and where the verdicts are, if they are there."""

    path: Path
    told: dict[str, Any]
    verdicts: Path | None


@dataclass(frozen=True, slots=True)
class Diff:
    """Figures before and after, and how many people moved from one verdict to another."""

    figures: tuple[tuple[str, Number, Number], ...]
    same_model: bool
    same_data: bool
    question_changes: tuple[str, ...]  # how the later question differs, in words
    partial: bool  # the later audit was interrupted
    moves: tuple[tuple[str, str, int], ...]  # verdict before, after, people
    newly_unfair: tuple[str, ...]  # rows, by their id where there is one

    @property
    def same_question(self) -> bool:
        """Whether both asked about the same columns, domains, sensitive attributes and decisions."""
        return not self.question_changes

    @property
    def answers_lost(self) -> bool:
        """Whether somebody had an answer and has none now, or is gone."""
        return any(new in OPEN and old not in OPEN for old, new, _ in self.moves)

    @property
    def unsettled(self) -> bool:
        """Whether fewer people are settled: then "not worse" would say too much."""
        counted = (self.counts(name) for name in ("undecided", "not_audited"))
        return self.partial or any(after > before for before, after in counted)

    @property
    def told_figures(self) -> tuple[tuple[str, Number, Number], ...]:
        """The figures that one of the two audits has."""
        return tuple(one for one in self.figures if one[1:] != (None, None))

    def counts(self, name: str) -> tuple[int, int]:
        """Give a count before and after; what a file does not say counts as none."""
        return next((int(old or 0), int(new or 0)) for one, old, new in self.figures if one == name)


def read_audit(path: Path) -> Audited:
    """Read an audit's folder, or its audit.json."""
    file = path / "audit.json" if path.is_dir() else path
    try:
        told = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SchemaError(f"{file}: there is no such file; feta audit --out writes it") from None
    except (UnicodeError, json.JSONDecodeError, RecursionError):
        raise SchemaError(f"{file}: there must be an audit.json here, got no JSON") from None
    if not isinstance(told, dict) or told.get("format") != FORMAT or told.get("version") != VERSION:
        raise SchemaError(f"{file}: there must be a {FORMAT} file, version {VERSION}, here")
    if not isinstance(told.get("summary"), dict) or not isinstance(told.get("model"), dict):
        raise SchemaError(f"{file}: the file must have a model and a summary; audit again")
    verdicts = file.with_name("verdicts.csv")
    return Audited(file, told, verdicts if verdicts.is_file() else None)


def compare(old: Audited, new: Audited) -> Diff:
    """Compare two audits; people are matched by id, or by row where the table is the same."""
    figures = [
        (name, _number(old.told["summary"].get(name)), _number(new.told["summary"].get(name)))
        for name in (*COUNTS, *SHARES)
    ]
    before, after = (one.told["summary"].get("one_attribute_is_enough") or {} for one in (old, new))
    figures += [
        (f"{name} alone", _number(before.get(name)), _number(after.get(name)))
        for name in dict.fromkeys([*before, *after])
    ]
    hashes = [one.told.get("data_sha256") for one in (old, new)]
    same_data = bool(hashes[0]) and hashes[0] == hashes[1]
    moves: Counter[tuple[str, str]] = Counter()
    unfair: list[str] = []
    for name, first, second in _matched(old, new, same_data=same_data):
        if first != second:
            moves[first, second] += 1
            if second == "unfair":
                unfair.append(name)
    return Diff(
        tuple(figures),
        _same_model(old.told["model"], new.told["model"]),
        same_data,
        tuple(_question_changes(old.told["model"], new.told["model"])),
        bool(new.told.get("partial")),
        tuple((*move, count) for move, count in sorted(moves.items())),
        tuple(unfair),
    )


def _same_model(old: dict[str, Any], new: dict[str, Any]) -> bool:
    """Compare the networks, or the files: a pipeline's network hangs on the schema it was read by."""
    keys = ("network", "file_sha256")
    return any(bool(old.get(key)) and old.get(key) == new.get(key) for key in keys)


def _question_changes(old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    """Say how the later question differs; what is sensitive is told by name."""
    before, after = (_mapping(one.get("sensitive")) for one in (old, new))
    if before and after:
        for name in dict.fromkeys([*before, *after]):
            if name not in after:
                yield f"{name} is no longer sensitive"
            elif name not in before:
                yield f"{name} is sensitive now"
            elif before[name] != after[name]:
                yield f"{name} may be {after[name]}, and could be {before[name]}"
    if old.get("space") != new.get("space") and (before == after or not before or not after):
        yield "the columns, their domains or which are sensitive"
    decided = [key for key in ("rule", "outcomes", "tolerance") if key in old and key in new]
    if any(old[key] != new[key] for key in decided):  # older files do not tell all of them
        yield "what is decided, or the tolerance"
    if old.get("tolerance_compares") != new.get(
        "tolerance_compares"
    ):  # version 0.1.0 had no such key
        yield "what a tolerance compares: the span of all counterparts' scores, or the distance to the person's own"


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def shown(name: str, value: Number) -> str:
    """Write a figure."""
    if value is None:
        return "-"
    return f"{value:.1%}" if name in SHARES else f"{value:,}"


def change(name: str, before: Number, after: Number) -> str:
    """Write how a figure changed: shares by percentage points."""
    if before is None or after is None or before == after:
        return ""
    return f"{100 * (after - before):+.1f} pp" if name in SHARES else f"{after - before:+,}"


def _number(value: object) -> Number:
    return value if isinstance(value, int | float) else None


def _matched(old: Audited, new: Audited, *, same_data: bool) -> Iterator[tuple[str, str, str]]:
    """Give each person's two verdicts; nothing where people cannot be told to be the same."""
    if old.verdicts is None or new.verdicts is None:
        return
    rows = [list(_rows(one.verdicts)) for one in (old, new) if one.verdicts is not None]
    ids = [[row.get("id", "") for row in side] for side in rows]
    if all(all(side) and len(set(side)) == len(side) for side in ids):
        known = {row["id"]: row["verdict"] for row in rows[0]}
        for row in rows[1]:
            yield row["id"], known.pop(row["id"], "absent"), row["verdict"]
        for name, verdict in known.items():
            yield name, verdict, "absent"
    elif same_data:
        for first, second in zip_longest(*rows, fillvalue={"verdict": "absent"}):
            yield f"row {second.get('row', '?')}", first["verdict"], second["verdict"]


def _rows(path: Path) -> Iterator[dict[str, str]]:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                if not row.get("verdict"):
                    raise SchemaError(f"{path}: every line must have a verdict; audit again")
                yield row
    except (UnicodeDecodeError, csv.Error) as error:
        message = f"{path}: must be a table as an audit writes it, got {error}; audit again"
        raise SchemaError(message) from None
