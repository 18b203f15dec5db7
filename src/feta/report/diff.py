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
    same_space: bool  # the same columns, domains and sensitive attributes
    partial: bool  # the later audit was interrupted
    moves: tuple[tuple[str, str, int], ...]  # verdict before, after, people
    newly_unfair: tuple[str, ...]  # rows, by their id where there is one

    @property
    def worse(self) -> bool:
        """Whether somebody is unfair who was not, or the figures say there are more."""
        return bool(self.newly_unfair) or self._more("unfair")

    @property
    def less_settled(self) -> bool:
        """Whether answers are missing that were there: then "not worse" would say too much."""
        lost = any(new in OPEN and old not in OPEN for old, new, _ in self.moves)
        return lost or self.partial or self._more("undecided") or self._more("not_audited")

    def _more(self, name: str) -> bool:
        before, after = next((old or 0, new or 0) for one, old, new in self.figures if one == name)
        return after > before


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
    same_model, same_space = (
        old.told["model"].get(key) == new.told["model"].get(key) for key in ("fingerprint", "space")
    )
    return Diff(
        tuple(figures),
        same_model,
        same_data,
        same_space,
        bool(new.told.get("partial")),
        tuple((*move, count) for move, count in sorted(moves.items())),
        tuple(unfair),
    )


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
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if not row.get("verdict"):
                raise SchemaError(f"{path}: every line must have a verdict; audit again")
            yield row
