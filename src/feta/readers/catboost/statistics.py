"""CatBoost's statistics of categories (CTRs): one number per category, compared with a border.

The statistics of one column form a fixed table. Those of several columns depend on combinations of
values, which no single test of a tree can express, so they are refused.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from feta.arrays import Flags, Vector
from feta.errors import NetworkError, unknown_choice
from feta.readers.catboost.category_hash import row_hash
from feta.readers.trees.document import Place

# The key of an unused entry of a stored table.
UNUSED = 2**64 - 1

MEANS = ("BinarizedTargetMeanValue", "FloatTargetMeanValue")
FREQUENCIES = ("Counter", "FeatureFreq")
KINDS = ("Borders", "Buckets", *MEANS, *FREQUENCIES)

Table = Mapping[int, Vector]  # what was counted in training, by the hash of a row


@dataclass(frozen=True, slots=True, eq=False)
class Statistic:
    """A number for each category of a column, in float32 as CatBoost computes it."""

    kind: str
    category_feature: int
    table: Table
    denominator: float  # of frequencies
    target_class: int
    prior: tuple[float, float]  # added to numerator and denominator
    shift: float
    scale: float
    known: dict[int, float] = field(default_factory=dict)  # results by category

    def value(self, category: int) -> float:
        """Return the number of a category."""
        if category not in self.known:
            self.known[category] = self._value(self.table.get(row_hash(category)))
        return self.known[category]

    def _value(self, counts: Vector | None) -> float:
        numerator, denominator = self._fraction(counts)
        single = np.float32
        with np.errstate(all="ignore"):
            share = (single(numerator) + single(self.prior[0])) / (
                single(denominator) + single(self.prior[1])
            )
            return float((share + single(self.shift)) * single(self.scale))

    def _fraction(self, counts: Vector | None) -> tuple[float, float]:
        """Return what is divided, without the prior; a category never seen has no counts."""
        if self.kind in FREQUENCIES:
            return (0.0 if counts is None else float(counts[0])), self.denominator
        if counts is None:
            return 0.0, 0.0
        if self.kind in MEANS:
            return float(counts[0]), float(counts[1])
        if self.kind == "Buckets":
            return float(counts[self.target_class]), float(counts.sum())
        return float(counts[self.target_class + 1 :].sum()), float(counts.sum())


@dataclass(frozen=True, slots=True, eq=False)
class AboveBorder:
    """The test whether the statistic of a category is above a border; if so, it goes right."""

    statistic: Statistic
    border: float

    def goes_left(self, numbers: Vector) -> Flags:
        """Flag the categories that go left."""
        values = [self.statistic.value(int(number)) for number in numbers]
        return ~(np.array(values) > self.border)


def read_statistics(document: Place, n_categories: int) -> list[tuple[Statistic, Vector]]:
    """Return the statistics of a model, and their borders."""
    features = document.member("features_info")
    if not features.has("ctrs"):
        return []
    tables: dict[str, tuple[Table, float]] = {}
    return [
        (_statistic(place, document, n_categories, tables), place.member("borders").floats())
        for place in features.member("ctrs").items()
    ]


def _statistic(
    place: Place, document: Place, n_categories: int, tables: dict[str, tuple[Table, float]]
) -> Statistic:
    kind = place.member("ctr_type").text()
    if kind not in KINDS:
        raise NetworkError(
            f"the statistics of categories are not supported: {unknown_choice(kind, KINDS)}"
        )
    feature = _only_feature(place, n_categories)
    identifier = place.member("identifier").text()
    if identifier not in tables:
        tables[identifier] = _table(document.member("ctr_data").member(identifier), kind)
    table, denominator = tables[identifier]
    target_class = place.member("target_border_idx").integer()
    n_counts = min((len(counts) for counts in table.values()), default=2)
    if not 0 <= target_class < n_counts:
        raise place.member("target_border_idx").error(f"a class from 0 to {n_counts - 1}")
    return Statistic(
        kind,
        feature,
        table,
        denominator,
        target_class,
        (
            place.member("prior_numerator").number(),
            place.member("prior_denomerator").number(),
        ),
        place.member("shift").number(),
        place.member("scale").number(),
    )


def _only_feature(place: Place, n_categories: int) -> int:
    """Return the category of which statistics are stored; refuse combinations of columns."""
    elements = place.member("elements").items()
    kinds = {element.member("combination_element").text() for element in elements}
    if len(elements) != 1 or kinds != {"cat_feature_value"}:
        raise NetworkError(
            f"the model reads statistics of combinations of columns ({place.where}): got "
            f"{len(elements)} columns; expected statistics of single columns; train it with "
            "max_ctr_complexity=1, or one_hot_max_size=255"
        )
    index = elements[0].member("cat_feature_index")
    if not 0 <= index.integer() < n_categories:
        raise index.error(f"one of {n_categories} categorical features")
    return index.integer()


def _table(place: Place, kind: str) -> tuple[Table, float]:
    """Return the counts of each category, and the denominator of frequencies."""
    stride = place.member("hash_stride").integer()
    entries = place.member("hash_map")
    values: list[Any] = entries.value if isinstance(entries.value, list) else []
    n_counts = stride - 1
    fixed = {**dict.fromkeys(MEANS, 2), **dict.fromkeys(FREQUENCIES, 1)}.get(kind)
    smallest = 2 if fixed is None else fixed
    if n_counts < smallest or (fixed or n_counts) != n_counts or len(values) % stride or not values:
        raise entries.error(f"rows of a key and {fixed or 'two or more'} numbers")
    table: dict[int, Vector] = {}
    for start in range(0, len(values), stride):
        key = _key(values[start], entries)
        counts = Place(values[start + 1 : start + stride], entries.where).doubles(n_counts)
        if key == UNUSED:
            continue
        if key in table or not np.isfinite(counts).all():
            raise entries.error("different keys and finite numbers")
        table[key] = counts
    return table, float(place.member("counter_denominator").integer())


def _key(value: object, entries: Place) -> int:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 20:  # noqa: PLR2004 - 2^64 has 20 digits
        return int(value)
    raise entries.error("keys that are integers of 64 bits")
