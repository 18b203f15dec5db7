"""Diff: what changed between two audits, from their audit.json and verdicts.csv."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from feta.report.audited import COUNTS, SHARES, Audited
from feta.report.matching import match
from feta.report.question import question_changes

OPEN = ("undecided", "not audited", "absent")  # verdicts that are no answer

Number = float | int | None


@dataclass(frozen=True, slots=True)
class Diff:
    """Figures before and after, and how many people moved from one verdict to another."""

    figures: tuple[tuple[str, Number, Number], ...]
    same_model: bool
    same_data: bool
    question_changes: tuple[str, ...]  # how the later question differs, in words
    partial: bool  # one of the audits was interrupted
    moves: tuple[tuple[str, str, int], ...]  # verdict before, after, people
    newly_unfair: tuple[str, ...]  # rows, by their id where there is one
    unmatched: tuple[str, ...] = ()  # why people cannot be matched one to one, in words
    contradicted: bool = False  # the files of one audit contradict each other

    @property
    def same_question(self) -> bool:
        """Whether both asked about the same columns, domains, sensitive attributes and decisions.

        A later question that is only stronger, such as one with a longer time limit, is the same.
        """
        return not self.question_changes

    @property
    def answers_lost(self) -> bool:
        """Whether somebody had an answer and has none now, was added without one, or is gone."""
        return any(
            new == "absent" or (new in OPEN and old in ("fair", "unfair", "absent"))
            for old, new, _ in self.moves
        )

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


def compare(old: Audited, new: Audited) -> Diff:
    """Compare two audits; people are matched by id, or by row number where the table is the same."""
    hashes = [audit.content["data_sha256"] for audit in (old, new)]
    matching = match(old, new)
    moves: Counter[tuple[str, str]] = Counter()
    unfair: list[str] = []
    for one in matching.people:
        if one.before.verdict != one.after.verdict:
            moves[one.before.verdict, one.after.verdict] += 1
            if one.after.verdict == "unfair":
                unfair.append(one.name)
    return Diff(
        tuple(_figures(old.summary, new.summary)),
        _same_model(old.model, new.model),
        bool(hashes[0]) and hashes[0] == hashes[1],
        tuple(question_changes(old, new)),
        old.partial or new.partial,
        tuple((*move, count) for move, count in sorted(moves.items())),
        tuple(unfair),
        matching.reasons,
        old.contradicted or new.contradicted,
    )


def _figures(old: dict[str, Any], new: dict[str, Any]) -> list[tuple[str, Number, Number]]:
    figures = [(name, old.get(name), new.get(name)) for name in (*COUNTS, *SHARES)]
    before, after = (one["one_attribute_is_enough"] for one in (old, new))
    names = dict.fromkeys([*before, *after])
    return figures + [(f"{name} alone", before.get(name), after.get(name)) for name in names]


def _same_model(old: dict[str, Any], new: dict[str, Any]) -> bool:
    """Compare the networks, or the files: a pipeline's network depends on the schema."""
    keys = ("network", "file_sha256")
    return any(bool(old.get(key)) and old.get(key) == new.get(key) for key in keys)


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
