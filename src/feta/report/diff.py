"""The difference between two audits, computed from their audit.json and verdicts.csv."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from feta.report.audited import COUNTS, SHARES, Audited
from feta.report.matching import match
from feta.report.question import question_changes

WITHOUT_ANSWER = ("undecided", "not audited", "absent")

Number = float | int | None


@dataclass(frozen=True, slots=True)
class Diff:
    """Figures before and after, and the number of people per change of verdict."""

    figures: tuple[tuple[str, Number, Number], ...]
    same_model: bool
    same_data: bool
    question_changes: tuple[str, ...]  # differences of the later question, in words
    partial: bool  # one of the audits was interrupted
    moves: tuple[tuple[str, str, int], ...]  # verdict before, verdict after, people
    newly_unfair: tuple[str, ...]  # ids, or row numbers
    unmatched: tuple[str, ...] = ()  # reasons why people cannot be matched one to one
    contradicted: bool = False  # the files of one audit contradict each other

    @property
    def same_question(self) -> bool:
        """Whether columns, domains, sensitive attributes and decisions are the same.

        A later question that is only stronger, such as one with a longer time limit, is the same.
        """
        return not self.question_changes

    @property
    def answers_lost(self) -> bool:
        """Whether somebody lost an answer, was added without one, or was removed."""
        return any(
            new == "absent" or (new in WITHOUT_ANSWER and old in ("fair", "unfair", "absent"))
            for old, new, _ in self.moves
        )

    @property
    def more_undecided(self) -> bool:
        """Whether more people have no answer: then "not worse" would claim too much."""
        counts = (self.counts(name) for name in ("undecided", "not_audited"))
        return self.partial or any(after > before for before, after in counts)

    @property
    def known_figures(self) -> tuple[tuple[str, Number, Number], ...]:
        """The figures that at least one of the audits has."""
        return tuple(figure for figure in self.figures if figure[1:] != (None, None))

    def counts(self, name: str) -> tuple[int, int]:
        """Return a count before and after; a missing count is 0."""
        return next((int(old or 0), int(new or 0)) for key, old, new in self.figures if key == name)


def compare(old: Audited, new: Audited) -> Diff:
    """Compare two audits; people are matched by id, or by row number of the same table."""
    hashes = [audit.content["data_sha256"] for audit in (old, new)]
    matching = match(old, new)
    moves: Counter[tuple[str, str]] = Counter()
    newly_unfair: list[str] = []
    for person in matching.people:
        if person.before.verdict != person.after.verdict:
            moves[person.before.verdict, person.after.verdict] += 1
            if person.after.verdict == "unfair":
                newly_unfair.append(person.name)
    return Diff(
        tuple(_figures(old.summary, new.summary)),
        _same_model(old.model, new.model),
        bool(hashes[0]) and hashes[0] == hashes[1],
        tuple(question_changes(old, new)),
        old.partial or new.partial,
        tuple((*move, count) for move, count in sorted(moves.items())),
        tuple(newly_unfair),
        matching.reasons,
        old.contradicted or new.contradicted,
    )


def _figures(old: dict[str, Any], new: dict[str, Any]) -> list[tuple[str, Number, Number]]:
    figures = [(name, old.get(name), new.get(name)) for name in (*COUNTS, *SHARES)]
    before, after = (side["one_attribute_is_enough"] for side in (old, new))
    names = dict.fromkeys([*before, *after])
    return figures + [(f"{name} alone", before.get(name), after.get(name)) for name in names]


def _same_model(old: dict[str, Any], new: dict[str, Any]) -> bool:
    """Compare the networks, or the files: the network of a pipeline depends on the schema."""
    keys = ("network", "file_sha256")
    return any(bool(old.get(key)) and old.get(key) == new.get(key) for key in keys)


def figure_text(name: str, value: Number) -> str:
    """Format a figure: counts with separators, shares in percent."""
    if value is None:
        return "-"
    return f"{value:.1%}" if name in SHARES else f"{value:,}"


def change_text(name: str, before: Number, after: Number) -> str:
    """Format the change of a figure: shares in percentage points."""
    if before is None or after is None or before == after:
        return ""
    return f"{100 * (after - before):+.1f} pp" if name in SHARES else f"{after - before:+,}"
