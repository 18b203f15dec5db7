"""Stored audits, read back and validated, for comparison.

An invalid audit.json is rejected. If verdicts.csv does not belong to it, the audit is read with a
doubt and without people: the rates may still be compared, if the summary is consistent.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from feta.errors import SchemaError
from feta.io.audit_folder import is_unchanged, read_json, read_lines
from feta.report.audit_json import FORMAT, VERSION

# The compared figures, in the order of display.
COUNTS = ("people", "fair", "unfair", "undecided", "not_audited", "runtime_sensitive")
SHARES = ("ce_rate", "flip_rate", "accuracy", "fair_accuracy")

# Verdicts in verdicts.csv, and the names of their counts in the summary.
VERDICTS = {
    "fair": "fair",
    "unfair": "unfair",
    "undecided": "undecided",
    "not audited": "not_audited",
}

# Files whose digests are in audit.json.
DIGESTED = ("pairs.csv", "verdicts.csv")


@dataclass(frozen=True, slots=True)
class Person:
    """One line of verdicts.csv."""

    id: str
    verdict: str
    record: str  # digest of the encoded record; empty if the row could not be read


@dataclass(frozen=True, slots=True, eq=False)
class Audited:
    """A stored audit: the content of audit.json, and its people if verdicts.csv belongs to it."""

    path: Path
    content: dict[str, Any]
    people: tuple[Person, ...]
    doubt: str = ""  # why people cannot be compared
    contradicted: bool = False  # the files contradict each other, so the summary is doubtful, too

    @property
    def model(self) -> dict[str, Any]:
        """The model and the question."""
        model: dict[str, Any] = self.content["model"]
        return model

    @property
    def summary(self) -> dict[str, Any]:
        """The counts and rates."""
        summary: dict[str, Any] = self.content["summary"]
        return summary

    @property
    def partial(self) -> bool:
        """Whether the audit was interrupted."""
        return bool(self.content["partial"])

    @property
    def id_column(self) -> str:
        """The column with the ids; empty without `--id`."""
        return str(self.content.get("id_column") or "")


def read_audit(path: Path) -> Audited:
    """Read an audit, given by its folder or its audit.json."""
    file = path / "audit.json" if path.is_dir() else path
    content = _load(file)
    _validate(file, content)
    if not file.with_name("verdicts.csv").is_file():
        return Audited(file, content, (), "verdicts.csv is missing")
    rows = list(_rows(file.with_name("verdicts.csv")))
    doubt = (
        _changed_files(file, content.get("files", {}))
        or _contradiction(rows, content["summary"])
        or _different_pairs(file, rows)
    )
    if doubt:
        return Audited(file, content, (), doubt, contradicted=True)
    if "verdicts.csv" not in content.get("files", {}):
        doubt = "audit.json has no digest of verdicts.csv (an earlier version)"
    return Audited(file, content, tuple(person for _, person in rows), doubt)


def _load(file: Path) -> dict[str, Any]:
    content = read_json(file)
    known = isinstance(content, dict) and content.get("format") == FORMAT
    if not known or not _is_count(content.get("version")) or content["version"] != VERSION:
        raise SchemaError(
            f"{file}: invalid file: got another format or version; expected format {FORMAT!r}, "
            f"version {VERSION}; audit again"
        )
    return dict(content)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_share(value: object) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return value is None or (number and 0 <= value <= 1)  # type: ignore[operator]  # a number


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_optional_text(value: object) -> bool:
    return value is None or isinstance(value, str)


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


def _is_limit(value: object) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return value is None or (number and value >= 0)  # type: ignore[operator]  # a number


def _is_mapping(value: object) -> bool:
    return isinstance(value, dict)


def _are_texts(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(part, str) for part in value.values())


def _are_counts(value: object) -> bool:
    return isinstance(value, dict) and all(_is_count(part) for part in value.values())


def _are_names(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(part, str) for part in value)


Check = tuple[Callable[[object], bool], str]

COUNT: Check = (_is_count, "a count")
SHARE: Check = (_is_share, "a share from 0 to 1, or null")
TEXT: Check = (_is_text, "a text")
OBJECT: Check = (_is_mapping, "an object")

REQUIRED: dict[tuple[str, ...], Check] = {
    ("partial",): (_is_flag, "true or false"),
    ("model",): OBJECT,
    ("summary",): OBJECT,
    ("data_sha256",): TEXT,
    ("model", "space"): TEXT,
    ("model", "rule"): TEXT,
    ("model", "outcomes"): (_are_names, "a list of texts"),
    ("model", "sensitive"): (_are_texts, "an object of texts"),
    **{("summary", name): COUNT for name in COUNTS},
    **{("summary", name): SHARE for name in SHARES},
    ("summary", "one_attribute_is_enough"): (_are_counts, "an object of counts"),
}

# Checked if present; audits of earlier versions do not have them.
OPTIONAL: dict[tuple[str, ...], Check] = {
    ("id_column",): (_is_optional_text, "a text or null"),
    ("seconds_per_person",): (_is_limit, "a number of seconds or null"),
    ("files",): (_are_texts, "an object of texts"),
    ("model", "reading"): TEXT,
    ("model", "network"): (_is_optional_text, "a text or null"),
    ("model", "file_sha256"): (_is_optional_text, "a text or null"),
    ("model", "rule_options"): OBJECT,
}


def _validate(file: Path, content: dict[str, Any]) -> None:
    """Raise unless every compared field has its type and the summary is consistent."""
    for keys, (is_valid, expected) in {**REQUIRED, **OPTIONAL}.items():
        parent: Any = content
        for key in keys[:-1]:
            parent = parent[key]  # an object is checked before its fields
        name = ".".join(keys)
        if keys[-1] not in parent:
            if keys in REQUIRED:
                raise SchemaError(f"{file}: missing key {name!r}; audit again")
        elif not is_valid(parent[keys[-1]]):
            got = repr(parent[keys[-1]])[:80]
            message = f"{file}: invalid {name!r}: got {got}; expected {expected}; audit again"
            raise SchemaError(message)
    _check_sums(file, content["summary"])


def _check_sums(file: Path, summary: dict[str, Any]) -> None:
    people, unfair = summary["people"], summary["unfair"]
    answered = sum(summary[name] for name in ("fair", "unfair", "undecided"))
    rate = unfair / people if people else 0.0
    attributes = summary["one_attribute_is_enough"].values()
    if people != answered:
        wrong = f"{people} people, but {answered} verdicts"
    elif summary["ce_rate"] is None or not math.isclose(summary["ce_rate"], rate, abs_tol=1e-12):
        wrong = f"{unfair} of {people} people unfair, but a CE rate of {summary['ce_rate']}"
    elif any(count > unfair for count in attributes):
        wrong = f"{unfair} people unfair, but {max(attributes)} of them by one attribute alone"
    else:
        return
    raise SchemaError(f"{file}: the summary contradicts itself: got {wrong}; audit again")


def _changed_files(file: Path, digests: dict[str, str]) -> str:
    changed = [
        name
        for name in DIGESTED
        if name in digests and not is_unchanged(file.with_name(name), digests[name])
    ]
    return f"{' and '.join(changed)} changed after audit.json was written" if changed else ""


def _contradiction(rows: list[tuple[str, Person]], summary: dict[str, Any]) -> str:
    counted = Counter(person.verdict for _, person in rows)
    unknown = sorted(set(counted) - set(VERDICTS))
    if unknown:
        return f"verdicts.csv has the unknown verdict {unknown[0]!r}"
    if [row for row, _ in rows] != [str(number) for number in range(1, len(rows) + 1)]:
        return "the rows of verdicts.csv are not numbered from 1 in order"
    for verdict, name in VERDICTS.items():
        if counted[verdict] != summary[name]:
            return (
                f"verdicts.csv has {counted[verdict]:,} people {verdict}, "
                f"and audit.json {summary[name]:,}"
            )
    return ""


def _different_pairs(file: Path, rows: list[tuple[str, Person]]) -> str:
    pairs = file.with_name("pairs.csv")
    if not pairs.is_file():
        return ""
    listed = [line.get("row") for line in read_lines(pairs)]
    unfair = [row for row, person in rows if person.verdict == "unfair"]
    return "" if listed == unfair else "verdicts.csv and pairs.csv name different unfair people"


def _rows(path: Path) -> Iterator[tuple[str, Person]]:
    for line in read_lines(path):
        cells = [line.get(name) for name in ("row", "id", "verdict")]
        if None in cells or not line["verdict"]:
            raise SchemaError(f"{path}: a line without row, id or verdict; audit again")
        row, name, verdict = map(str, cells)
        yield row, Person(name, verdict, line.get("record") or "")
