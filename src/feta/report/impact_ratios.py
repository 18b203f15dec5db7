"""Impact ratios by category and intersection, in the form of New York City's rules on bias audits.

Rules of the City of New York, title 6, § 5-301: the selection rate of a category divided by the
highest one; for scores, the share above the median instead. Unknown categories are counted, and
categories below 2 % are marked.
"""

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import IO

from feta.io.sanitize import write_row
from feta.report.person_groups import PersonGroups

# An auditor may exclude smaller categories (§ 5-301(d)).
SMALL = Fraction(2, 100)

HEADER = [
    "decisions", "columns", "category", "people", "share", "selected", "selection_rate",
    "impact_ratio", "impact_ratio_from_2_percent", "note",
]  # fmt: skip
MODEL, FAIR = "model", "fair"
SEPARATOR = " / "


@dataclass(frozen=True, slots=True)
class ImpactRow:
    """One category: its people, how many of them are selected, and its impact ratios."""

    decisions: str  # of the model, or the fair ones
    columns: tuple[str, ...]
    category: str
    people: int
    share: Fraction  # of all people with a decision
    selected: int
    rate: Fraction | None = None  # None: nobody
    ratio: Fraction | None = None  # to the highest rate of all categories
    ratio_from_2_percent: Fraction | None = None  # to the highest rate of those that are not small
    note: str = ""

    def cells(self) -> list[object]:
        """Return the cells of a CSV line."""
        numbers = (self.rate, self.ratio, self.ratio_from_2_percent)
        rates = [_decimal(number) for number in numbers]
        names = SEPARATOR.join(self.columns)
        first = [self.decisions, names, self.category, self.people, _decimal(self.share)]
        return [*first, self.selected, *rates, self.note]


def _decimal(number: Fraction | None) -> object:
    return "" if number is None else round(float(number), 6)


def is_selected(outcomes: Sequence[Fraction | int | None], chosen: int | None) -> list[bool | None]:
    """Return who is selected: by the index of a decision, or by a score above the median."""
    if chosen is not None:
        return [None if outcome is None else outcome == chosen for outcome in outcomes]
    known = [Fraction(outcome) for outcome in outcomes if outcome is not None]
    median = statistics.median(known) if known else 0
    return [None if outcome is None else outcome > median for outcome in outcomes]


def impact_rows(
    groups: Sequence[PersonGroups], selected: Sequence[bool | None], decisions: str
) -> Iterator[ImpactRow]:
    """Yield the rows of each column, of each pair of columns, and of all columns together."""
    sizes = sorted({1, 2, len(groups)} & set(range(1, len(groups) + 1)))
    for size in sizes:
        for chosen in combinations(groups, size):
            yield from _rows(chosen, selected, decisions)


def _rows(
    groups: Sequence[PersonGroups], selected: Sequence[bool | None], decisions: str
) -> Iterator[ImpactRow]:
    columns = tuple(one.column for one in groups)
    decided = sum(one is not None for one in selected)
    people: dict[tuple[str, ...], list[bool]] = {}
    if len(groups) == 1:  # also categories without people
        people = {(name,): [] for name in groups[0].categories}
    unknown: list[bool] = []
    for is_chosen, names in zip(
        selected, zip(*(one.members for one in groups), strict=True), strict=True
    ):
        if is_chosen is None:
            continue
        known = tuple(name for name in names if name is not None)
        complete = len(known) == len(names)
        (people.setdefault(known, []) if complete else unknown).append(is_chosen)
    rates = {names: Fraction(sum(them), len(them)) for names, them in people.items() if them}
    large = [rate for names, rate in rates.items() if len(people[names]) >= SMALL * decided]
    for names in _ordered(groups, people):
        them = people[names]
        small = len(them) < SMALL * decided
        rate = rates.get(names)
        yield ImpactRow(
            decisions,
            columns,
            SEPARATOR.join(names),
            len(them),
            _share(len(them), decided),
            sum(them),
            rate,
            _ratio(rate, list(rates.values())),
            None if small else _ratio(rate, large),
            "below 2 %" if small else "",
        )
    row = (decisions, columns)
    yield ImpactRow(
        *row, "unknown", len(unknown), _share(len(unknown), decided), sum(unknown),
        note="not in the ratios",
    )  # fmt: skip
    missing = len(selected) - decided
    yield ImpactRow(*row, "no decision", missing, Fraction(0), 0, note="not in the ratios")


def _ordered(
    groups: Sequence[PersonGroups], people: dict[tuple[str, ...], list[bool]]
) -> list[tuple[str, ...]]:
    """Return the categories in the order of the schema."""
    places = [{name: place for place, name in enumerate(one.categories)} for one in groups]
    return sorted(
        people, key=lambda names: [place[name] for place, name in zip(places, names, strict=True)]
    )


def _share(count: int, total: int) -> Fraction:
    return Fraction(count, total) if total else Fraction(0)


def _ratio(rate: Fraction | None, rates: Sequence[Fraction]) -> Fraction | None:
    highest = max(rates, default=Fraction(0))
    return None if rate is None or not highest else rate / highest


def write_impact_rows(rows: Sequence[ImpactRow], stream: IO[str]) -> None:
    """Write ll144.csv."""
    write_row(stream, HEADER)
    for row in rows:
        write_row(stream, row.cells())
