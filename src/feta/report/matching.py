"""The people of two audits, matched one to one by id, or by row number of the same table."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from feta.io.sanitize import listed
from feta.report.audited import Audited, Person

ABSENT = Person("", "absent", "")


@dataclass(frozen=True, slots=True)
class Match:
    """One person in both audits; `ABSENT` on a side that does not have the id."""

    name: str
    before: Person
    after: Person


@dataclass(frozen=True, slots=True)
class Matching:
    """The people of two audits, and the reasons why they cannot be compared, if any."""

    people: tuple[Match, ...] = ()
    reasons: tuple[str, ...] = ()


def match(old: Audited, new: Audited) -> Matching:
    """Match people one to one, or state why that is impossible."""
    reasons = (*_obstacles(old), *_obstacles(new), *_different_keys(old, new))
    if reasons:
        return Matching(reasons=reasons)
    people = tuple(_by_id(old, new) if old.id_column else _by_row(old, new))
    return Matching(people, tuple(_changed_records(old, new, people)))


def _obstacles(audit: Audited) -> Iterator[str]:
    """State what is wrong with one audit alone."""
    if audit.doubt:
        yield f"{audit.path}: {audit.doubt}"
    elif audit.id_column:
        ids = Counter(person.id for person in audit.people)
        if ids[""]:
            yield f"{audit.path}: {ids['']:,} ids are empty"
        repeated = [name for name, count in ids.items() if count > 1 and name]
        if repeated:
            yield f"{audit.path}: ids occur more than once: {listed(repeated)}"


def _different_keys(old: Audited, new: Audited) -> Iterator[str]:
    """State why the two audits do not identify people in the same way."""
    if old.id_column != new.id_column:
        one, other = (f"--id {a.id_column}" if a.id_column else "no --id" for a in (old, new))
        yield f"the earlier audit has {one}, the later one {other}"
    elif old.id_column:
        return
    elif not _same_data(old, new):
        yield "there are no ids, and the two audits read different data files"
    elif not (old.doubt or new.doubt) and len(old.people) != len(new.people):
        counts = f"{len(old.people):,} and {len(new.people):,} rows"
        partial = ", one is partial" if old.partial or new.partial else ""
        yield f"there are no ids, and the two audits have {counts}{partial}"


def _same_data(old: Audited, new: Audited) -> bool:
    before, after = (audit.content["data_sha256"] for audit in (old, new))
    return bool(before) and before == after


def _by_id(old: Audited, new: Audited) -> Iterator[Match]:
    remaining = {person.id: person for person in old.people}
    for person in new.people:
        yield Match(person.id, remaining.pop(person.id, ABSENT), person)
    for name, person in remaining.items():
        yield Match(name, person, ABSENT)


def _by_row(old: Audited, new: Audited) -> Iterator[Match]:
    for number, (before, after) in enumerate(zip(old.people, new.people, strict=True), start=1):
        yield Match(f"row {number}", before, after)


def _changed_records(old: Audited, new: Audited, people: tuple[Match, ...]) -> Iterator[str]:
    """Find ids that now name another record.

    Otherwise the counterexample of the new record would pass for the earlier one.
    """
    if old.model["space"] != new.model["space"]:
        return  # the same record is encoded differently; the question differs as well
    if not old.id_column and any(pair.before.record != pair.after.record for pair in people):
        yield "both audits name the same data file, but their records differ"
        return
    changed = [
        pair.name
        for pair in people
        if (pair.before.verdict, pair.after.verdict) == ("unfair", "unfair")
        and pair.before.record != pair.after.record
    ]
    if changed:
        yield f"people are unfair in both audits, but their records differ: {listed(changed)}"
