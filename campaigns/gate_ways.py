"""Ways to hide a newly unfair person from `feta diff`, and honest comparisons."""

import json
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import feta
from campaigns.gate_audits import (
    AFTER,
    BEFORE,
    Audits,
    Row,
    all_fair,
    edit_json,
    edit_text,
    fair_summary,
    model_of,
    new_digests,
    table,
)

ID = ("--id", "id")
Maker = Callable[[Audits], tuple[Path, Path]]


@dataclass(frozen=True)
class Way:
    """Two audits to compare, further options, and the correct exit codes."""

    name: str
    make: Maker
    options: tuple[str, ...] = ()
    codes: tuple[int, ...] = (1, 2, 3)


def rows(
    name: str,
    change: Callable[[list[Row]], list[Row]],
    *options: str,
    before: tuple[str, ...] | None = None,
) -> Way:
    """Audit another table with the later model."""

    def make(audits: Audits) -> tuple[Path, Path]:
        new = audits.audit(name.replace(" ", "-"), model_of(AFTER), change(table()), *options)
        return audits.before(*(options if before is None else before)), new

    return Way(name, make)


def query(name: str, model: feta.Model, *options: str, old: feta.Model | None = None) -> Way:
    """Audit the later model with another query."""

    def make(audits: Audits) -> tuple[Path, Path]:
        key = name.replace(" ", "-")
        first = audits.before() if old is None else audits.audit(f"{key}-old", old)
        return first, audits.audit(key, model, None, *options)

    return Way(name, make)


def edited(
    name: str, change: Callable[[Path], object], *options: str, codes: tuple[int, ...] = (2, 3)
) -> Way:
    """Change the later audit's files."""

    def make(audits: Audits) -> tuple[Path, Path]:
        new = audits.copy(audits.after())
        change(new)
        return audits.before(), new

    return Way(name, make, options, codes)


def edited_json(name: str, change: Callable[[dict[str, object]], object], *options: str) -> Way:
    """Change the later audit's audit.json."""
    return edited(name, lambda out: edit_json(out, change), *options)


def summary(name: str, *options: str, **values: object) -> Way:
    """Write other values into the later summary."""
    return edited_json(name, lambda content: content["summary"].update(values), *options)  # type: ignore[attr-defined]  # an object


def _shuffled(people: list[Row]) -> list[Row]:
    return random.Random(1).sample(people, len(people))


def _set_ids(people: list[Row], ids: dict[int, str]) -> list[Row]:
    return [row | {"id": ids.get(index, row["id"])} for index, row in enumerate(people)]


def without_new(people: list[Row]) -> list[Row]:
    """Remove the people near the later level."""
    return [row for row in people if not AFTER - 10 <= float(row["income"]) <= AFTER]


def unreadable(people: list[Row]) -> list[Row]:
    """Make the records of the people near the later level invalid."""
    others = {row["id"] for row in without_new(people)}
    return [row if row["id"] in others else row | {"income": "?"} for row in people]


def swapped_ids(people: list[Row]) -> list[Row]:
    """Exchange the ids of people with a counterexample before and of those with one now."""
    places = {
        level: [n for n, row in enumerate(people) if _near(row, level)] for level in (BEFORE, AFTER)
    }
    pairs = list(zip(places[BEFORE], places[AFTER], strict=False))
    both = pairs + [(new, old) for old, new in pairs]
    return _set_ids(people, {index: people[other]["id"] for index, other in both})


def _near(row: Row, level: float) -> bool:
    return level - 9 <= float(row["income"]) < level - 1.8


TABLES = [
    rows("rows reversed", lambda people: people[::-1]),
    rows("rows shuffled", _shuffled),
    rows("one row added at the top", lambda people: [people[0], *people]),
    rows("a row added at the end", lambda people: [*people, people[0]]),
    rows("a row removed", lambda people: people[1:]),
    rows("a row replaced", lambda people: [people[-1], *people[1:]]),
    rows("newly unfair people removed", without_new),
    rows("newly unfair people unreadable", unreadable, "--skip-bad-rows", before=()),
    rows("newly unfair people removed, ids", without_new, *ID),
    rows("newly unfair people unreadable, ids", unreadable, *ID, "--skip-bad-rows", before=ID),
    rows("all ids empty", lambda p: _set_ids(p, dict.fromkeys(range(len(p)), "")), *ID),
    rows("one id empty", lambda people: _set_ids(people, {3: ""}), *ID),
    rows("one id twice", lambda people: _set_ids(people, {3: "p4"}), *ID),
    rows("one id for all", lambda p: _set_ids(p, dict.fromkeys(range(len(p)), "p")), *ID),
    rows("ids renamed", lambda p: [row | {"id": f"x{row['id']}"} for row in p], *ID),
    rows(
        "ids shifted by one", lambda p: _set_ids(p, {n: f"p{(n + 4) % 24}" for n in range(24)}), *ID
    ),
    rows("ids exchanged between records", swapped_ids, *ID),
    rows("ids in the later audit only", lambda people: people, *ID, before=()),
    rows("ids in the earlier audit only", lambda people: people, before=ID),
    rows("ids of another column", lambda people: people, "--id", "other", before=ID),
]

QUERIES = [
    query("another column is sensitive", model_of(AFTER, sensitive=("income",))),
    query(
        "fewer columns are sensitive",
        model_of(AFTER),
        old=model_of(BEFORE, sensitive=("age", "income")),
    ),
    query("narrower limits", model_of(AFTER, ages=(18, 89))),
    query("another threshold", model_of(AFTER, rule=feta.Threshold(-10.0))),
    query("an unreachable threshold", model_of(AFTER, rule=feta.Threshold(-1000.0))),
    query("the other side is favored", model_of(AFTER, rule=feta.Threshold(0.0, "below"))),
    query(
        "another decision on a tie",
        model_of(AFTER, rule=feta.Threshold(0.0, "above", "unfavorable")),
    ),
    query("sampled instead of proved", model_of(AFTER, provenance="sampled")),
    query("a tolerance instead of a threshold", model_of(AFTER, rule=feta.Tolerance(100.0))),
    query(
        "a larger tolerance",
        model_of(AFTER, rule=feta.Tolerance(100.0)),
        old=model_of(BEFORE, rule=feta.Tolerance(1.0)),
    ),
    query("no time", model_of(AFTER), "--seconds", "0", "--engine", "exhaustive"),
]


def _cut(out: Path) -> None:
    edit_text(out, "verdicts.csv", lambda text: "".join(text.splitlines(keepends=True)[:12]))


def _exchange_lines(out: Path) -> None:
    def change(text: str) -> str:
        head, *lines = text.splitlines(keepends=True)
        return "".join([head, *reversed(lines)])

    edit_text(out, "verdicts.csv", change)
    new_digests(out)


def _everything_but_pairs(out: Path) -> None:
    all_fair(out)
    edit_json(out, fair_summary)
    new_digests(out)


def _everything_but_digests(out: Path) -> None:
    all_fair(out)
    edit_json(out, fair_summary)
    (out / "pairs.csv").unlink()


def _no_digests(out: Path) -> None:
    _everything_but_digests(out)
    edit_json(out, lambda content: content.pop("files"))


def _no_tables(out: Path) -> None:
    for name in ("verdicts.csv", "pairs.csv"):
        (out / name).unlink()


def _header_only(out: Path) -> None:
    edit_text(out, "verdicts.csv", lambda text: text.splitlines(keepends=True)[0])


def _forget(out: Path, name: str) -> None:
    edit_json(out, lambda content: content["model"].pop(name))


def _repeat_key(out: Path) -> None:
    edit_text(
        out, "audit.json", lambda text: text.replace('"unfair":', '"unfair": 9, "unfair":', 1)
    )


def _nul_bytes(out: Path) -> None:
    edit_text(out, "verdicts.csv", lambda text: text[:200] + "\0" * 50 + text[250:])


def _infinite(out: Path) -> None:
    edit_text(out, "audit.json", lambda text: text.replace('"people": 24', '"people": 1e999'))


EDITED = [
    edited("verdicts.csv missing", lambda out: (out / "verdicts.csv").unlink()),
    edited(
        "verdicts.csv and pairs.csv missing",
        _no_tables,
    ),
    edited("verdicts.csv cut", _cut),
    edited("verdicts.csv with its header only", _header_only),
    edited("verdicts.csv empty", lambda out: (out / "verdicts.csv").write_text("")),
    edited("verdicts.csv with NUL bytes", _nul_bytes),
    edited("verdicts.csv calls everybody fair", all_fair),
    edited("verdicts.csv in another order", _exchange_lines),
    edited("the summary calls everybody fair", lambda out: edit_json(out, fair_summary)),
    edited(
        "the summary calls everybody fair, rates",
        lambda out: edit_json(out, fair_summary),
        "--rate-only",
    ),
    edited("everything is edited but pairs.csv", _everything_but_pairs),
    edited("everything is edited but pairs.csv, rates", _everything_but_pairs, "--rate-only"),
    edited("everything is edited but the digests", _everything_but_digests),
    edited("the digests are removed", _no_digests),
    edited("the rule's options are removed", lambda out: _forget(out, "rule_options")),
    edited("the provenance is removed", lambda out: _forget(out, "reading")),
    edited("the space is removed", lambda out: _forget(out, "space")),
    edited("a key occurs twice", _repeat_key),
    edited("an infinite count", _infinite),
    edited_json("partial set to a text", lambda content: content.update(partial="no")),
    edited_json("the summary is a list", lambda content: content.update(summary=[])),
    edited_json("the model is a number", lambda content: content.update(model=1)),
    edited_json("the version is true", lambda content: content.update(version=True)),
    summary("a count is NaN", unfair=float("nan")),
    summary("a count is a list", unfair=[]),
    summary("a count is a text", unfair="0"),
    summary("a count is negative", unfair=-5),
    summary("a count is true", unfair=True),
    summary("a count is a fraction", unfair=0.5),
    summary("fewer unfair people", unfair=0),
    summary("a lower rate", ce_rate=0.0),
    summary("a lower rate, rates", "--rate-only", ce_rate=0.0),
    summary("more people, rates", "--rate-only", people=10_000),
    summary("the attributes are a list", one_attribute_is_enough=[]),
]


def forged_table(audits: Audits) -> tuple[Path, Path]:
    """Claim that the reordered table is the earlier one."""
    old = audits.before()
    new = audits.copy(audits.audit("forged-table", model_of(AFTER), table()[::-1]))
    digest = json.loads((old / "audit.json").read_text(encoding="utf-8"))["data_sha256"]
    edit_json(new, lambda content: content.update(data_sha256=digest))
    return old, new


def old_verdicts(audits: Audits) -> tuple[Path, Path]:
    """Copy the earlier verdicts to the later folder."""
    old, new = audits.before(), audits.copy(audits.after())
    shutil.copy(old / "verdicts.csv", new / "verdicts.csv")
    return old, new


def old_summary(audits: Audits) -> tuple[Path, Path]:
    """Copy the earlier audit.json to the later folder."""
    old, new = audits.before(), audits.copy(audits.after())
    shutil.copy(old / "audit.json", new / "audit.json")
    return old, new


def _without_old_verdicts(audits: Audits) -> tuple[Path, Path]:
    old = audits.copy(audits.before())
    (old / "verdicts.csv").unlink()
    return old, audits.after()


def _partial_new(audits: Audits, *options: str) -> tuple[Path, Path]:
    name = f"partial{''.join(options)}"
    return audits.before(*options), audits.audit(
        name, model_of(AFTER), None, *options, stop_after=5
    )


def _partial_old(audits: Audits) -> tuple[Path, Path]:
    old = audits.audit("partial-before", model_of(BEFORE), None, stop_after=20)
    return old, audits.audit("short", model_of(AFTER), table()[:20])


def _both_partial(audits: Audits) -> tuple[Path, Path]:
    old = audits.audit("both-before", model_of(BEFORE), None, stop_after=5)
    return old, audits.audit("both-after", model_of(AFTER), None, stop_after=5)


MIXED = [
    Way("the later folder twice", lambda audits: (audits.after(), audits.after())),
    Way("the later folder, and its audit.json", lambda a: (a.after(), a.after() / "audit.json")),
    Way("the digest of a reordered table forged", forged_table),
    Way("the earlier verdicts in the later folder", old_verdicts),
    Way("the earlier audit.json in the later folder", old_summary),
    Way("the earlier verdicts missing", _without_old_verdicts),
    Way("the later audit partial", _partial_new),
    Way("the later audit partial, ids", lambda audits: _partial_new(audits, *ID)),
    Way("the earlier audit partial", _partial_old),
    Way("both audits partial", _both_partial),
]


def better(audits: Audits, *options: str) -> tuple[Path, Path]:
    """Compare with a model that is fair to everybody."""
    new = audits.audit(f"better{''.join(options)}", model_of(500.0), None, *options)
    return audits.before(*options), new


def _again(audits: Audits) -> tuple[Path, Path]:
    return audits.before(), audits.audit("again", model_of(BEFORE))


def _reordered_with_ids(audits: Audits) -> tuple[Path, Path]:
    return audits.before(*ID), audits.audit("reordered", model_of(BEFORE), table()[::-1], *ID)


def _added_with_ids(audits: Audits) -> tuple[Path, Path]:
    fair = {"id": "p99", "other": "q99", "age": "30", "income": str(INCOME_FAIR)}
    return audits.before(*ID), audits.audit("added", model_of(BEFORE), [*table(), fair], *ID)


def _proved_now(audits: Audits) -> tuple[Path, Path]:
    return audits.audit("sampled-before", model_of(BEFORE, provenance="sampled")), audits.before()


def _more_time(audits: Audits) -> tuple[Path, Path]:
    options = ("--seconds", "0", "--engine", "exhaustive")
    return audits.audit("no-time-before", model_of(500.0), None, *options), better(audits)[1]


def _without_pairs(audits: Audits) -> tuple[Path, Path]:
    old, new = _again(audits)
    copy = audits.copy(new)
    (copy / "pairs.csv").unlink()
    return old, copy


INCOME_FAIR = 77.5

HONEST = [
    Way("the same model again", _again, codes=(0,)),
    Way("a better model", better, codes=(0,)),
    Way("a better model, ids", lambda audits: better(audits, *ID), codes=(0,)),
    Way("another order, ids", _reordered_with_ids, codes=(0,)),
    Way("a fair person added, ids", _added_with_ids, codes=(0,)),
    Way("proved instead of sampled", _proved_now, codes=(0,)),
    Way("more time", _more_time, codes=(0,)),
    Way("pairs.csv not kept", _without_pairs, codes=(0,)),
    Way("other people unfair", lambda audits: (audits.before(), audits.after()), codes=(1,)),
    Way("other people unfair, ids", lambda a: (a.before(*ID), a.after(*ID)), codes=(1,)),
    Way(
        "other people unfair, allowed",
        lambda a: (a.before(), a.after()),
        ("--allow-new", "24"),
        (0,),
    ),
    Way("other people unfair, rates", lambda a: (a.before(), a.after()), ("--rate-only",), (0,)),
    Way("more people unfair, rates", lambda a: (better(a)[1], a.after()), ("--rate-only",), (1,)),
    Way("another table, rates", lambda a: (a.before(), better(a, *ID)[1]), ("--rate-only",), (0,)),
]

HIDING = [*TABLES, *QUERIES, *EDITED, *MIXED]
