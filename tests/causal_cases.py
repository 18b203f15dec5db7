"""Random causal models, each with the related people that an oracle finds itself, in fractions.

Nothing of `feta.relation` decides who is related: equations are functions of records, and with a
key the related people are all records of the space that have the same noise.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any, Literal

import numpy as np

from feta.arrays import Vector
from feta.space.attribute import Attribute, Categorical, Derived, Integer, Levels, Real
from feta.space.feature_space import FeatureSpace
from tests import oracle
from tests.relation_cases import record_of

Record = dict[str, Any]
Effect = Callable[[Mapping[str, Any]], Fraction]
Entry = dict[str, Any]

JOBS = ("clerk", "boss", "none")

HOURS = {0.25: (0.0, 0.25, 0.5, 0.75), 0.1: (0.0, 0.1, 0.2, 0.3)}


@dataclass(frozen=True)
class NaiveCauses:
    """Equations in their order, as functions of records."""

    space: FeatureSpace
    numbers: dict[str, tuple[Fraction, list[Effect]]]  # step and effects
    bands: dict[str, Callable[[Mapping[str, Any]], object]]  # the band of a record
    quantile: Callable[[Mapping[str, Any], Mapping[str, Any]], object] | None
    clip: bool

    def noise(self, record: Mapping[str, Any]) -> tuple[object, ...]:
        """Return what a person shares with counterparts."""
        noise: list[object] = []
        for name, (step, effects) in self.numbers.items():
            value = record[name]
            noise.append(None if value is None else exact(value) - gained(record, step, effects))
        return (*noise, *(band(record) for band in self.bands.values()))

    def counterparts(self, person: Vector) -> list[tuple[int, Vector]]:
        """List the related people, each with the number of the combination of sensitive values."""
        own = record_of(self.space, person)
        if self.clip or self.quantile is not None:
            return self._predicted(own)
        moving = [*self.numbers, *self.bands]
        free = [oracle.values_of(self.space.attribute(name)) for name in moving]
        noise, rows = self.noise(own), []
        for number, assigned in enumerate(self._assigned(own)):
            for cells in product(*free):
                record = assigned | dict(zip(moving, cells, strict=True))
                if self.noise(record) == noise:
                    rows.append((number, row_of(self.space, record)))
        return rows

    def _predicted(self, own: Record) -> list[tuple[int, Vector]]:
        """Predict forward, for relations without a key."""
        noise = dict(zip([*self.numbers, *self.bands], self.noise(own), strict=True))
        rows = []
        for number, record in enumerate(self._assigned(own)):
            exists = True
            for name, (step, effects) in self.numbers.items():
                if own[name] is None:
                    continue
                value = noise[name] + gained(record, step, effects)  # type: ignore[operator]
                numbers = [v for v in oracle.values_of(self.space.attribute(name)) if v is not None]
                known = {exact(one): one for one in numbers}
                if self.clip:
                    value = min(max(value, min(known)), max(known))
                exists &= value in known
                record[name] = known.get(value)
                if not exists:
                    break
            if exists and self.quantile is not None:
                record["job"] = self.quantile(own, record)
            choices = [record]
            for name, band in self.bands.items():
                values = oracle.values_of(self.space.attribute(name))
                choices = [
                    one | {name: value}
                    for one in choices
                    for value in values
                    if band(one | {name: value}) == noise[name]
                ]
            rows += [(number, row_of(self.space, one)) for one in choices if exists]
        return rows

    def _assigned(self, own: Record) -> list[Record]:
        sensitive = [a for a in self.space.attributes if getattr(a, "sensitive", False)]
        names = [a.name for a in sensitive]
        return [
            own | dict(zip(names, cells, strict=True))
            for cells in product(*(oracle.values_of(a) for a in sensitive))
        ]

    def strangers(self, person: Vector) -> list[Vector]:
        """Return a few people with other values of descendants."""
        own = record_of(self.space, person)
        records = []
        for name in (*self.numbers, *self.bands):
            values = oracle.values_of(self.space.attribute(name))
            records += [own | {name: value} for value in values[:3]]
        records += [one | {"income": 0.125} for one in records[:1]]
        return [row_of(self.space, record) for record in records]


def exact(value: Any) -> Fraction:  # noqa: ANN401 - a number
    """Return a number as people write it."""
    return Fraction(repr(value))


def gained(record: Mapping[str, Any], step: Fraction, effects: list[Effect]) -> Fraction:
    """Return the sum of the effects, each rounded to the step."""
    return sum((step * round(effect(record) / step) for effect in effects), Fraction(0))


def row_of(space: FeatureSpace, record: Mapping[str, Any]) -> Vector:
    """Write a record as a row, column by column."""
    row: list[float] = []
    for attribute in space.attributes:
        if isinstance(attribute, Derived):
            row += oracle.columns_of_band(attribute, record[attribute.source])
        elif isinstance(attribute, Real):
            row.append(record[attribute.name])
        else:
            row += oracle.columns_of_value(attribute, record[attribute.name])
    return np.array(row)


def random_causal_space(rng: np.random.Generator, *, sums: bool = False) -> FeatureSpace:
    """Draw a space whose columns `years`, `hours` and `job` may follow from the sensitive ones.

    With `sums`, nothing is rounded or missing, so that equations may be sums.
    """

    def missing() -> bool:
        return bool(rng.random() < 0.2) and not sums

    step = 0.25 if sums else float(rng.choice([0.25, 0.1]))
    attributes: list[Attribute] = [
        Integer("age", 20, 20 + int(rng.integers(1, 4)), sensitive=True),
        Categorical("sex", ("female", "male"), sensitive=True, missing=missing()),
        Integer("years", 0, int(rng.integers(2, 7)), missing=missing()),
        Levels("hours", HOURS[step], missing=missing()),
        Categorical("job", JOBS, missing=missing()),
        Real("income", -8.0, 8.0),
    ]
    if rng.random() < 0.3 and not attributes[2].missing and not sums:  # type: ignore[union-attr]
        attributes.append(Derived("early", "years", (("yes", 0, 1), ("no", 2, 9))))
    return FeatureSpace(tuple(attributes[n] for n in rng.permutation(len(attributes))))


def random_equations(
    rng: np.random.Generator, space: FeatureSpace, *, sums: bool = False
) -> tuple[list[Entry], Literal["leave out", "clip"], NaiveCauses]:
    """Draw one to three equations as entries of a file, and as functions."""
    numbers: dict[str, tuple[Fraction, list[Effect]]] = {}
    entries: list[Entry] = []
    chosen = [
        name for name in ("years", "hours", "job")[: 2 if sums else 3] if rng.random() < 0.6
    ] or ["years"]
    parents = ["age", "sex"]
    for name in chosen:
        if name == "job":
            continue
        attribute = space.attribute(name)
        step = Fraction(1) if name == "years" else exact(attribute.numbers[1])  # type: ignore[union-attr]
        entry, effects = _number(rng, name, step, parents, sums=sums)
        entries.append(entry)
        numbers[name] = (step, effects)
        parents.append(name)
    bands: dict[str, Callable[[Mapping[str, Any]], object]] = {}
    quantile = None
    if "job" in chosen:
        if rng.random() < 0.2:
            entry, quantile = _quantiles(rng, space)
        else:
            entry, bands["job"] = _bands(rng, space)
        entries.append(entry)
    clip = bool(numbers) and rng.random() < 0.15 and not sums
    order = rng.permutation(len(entries))
    naive = NaiveCauses(space, numbers, bands, quantile, clip)
    return [entries[n] for n in order], "clip" if clip else "leave out", naive


def _number(
    rng: np.random.Generator, name: str, step: Fraction, parents: list[str], *, sums: bool
) -> tuple[Entry, list[Effect]]:
    entry: Entry = {"column": name}
    effects: list[Effect] = []
    for parent in [*parents, "income"]:
        if rng.random() < (0.9 if parent == "income" else 0.5):
            continue
        if parent == "sex":
            amount = float(rng.integers(-4, 5)) * float(step) * float(rng.choice([1.0, 0.75, 0.5]))
            entry.setdefault("shifts", {})["sex"] = {"male": amount}
            effects.append(_if("male", None, amount))
        else:
            slope = float(rng.choice([1.0, -1.0, 0.5, 0.3, 2.0])) * float(step)
            slope = float(rng.integers(-2, 3)) if sums and parent == "years" else slope
            entry.setdefault("slopes", {})[parent] = slope
            effects.append(_per_unit(parent, slope))
    causes = {*entry.get("shifts", ()), *entry.get("slopes", ())} - {"income"}
    if not causes and sums:
        entry.setdefault("slopes", {})["age"] = 0.7
        effects.append(_per_unit("age", 0.7))
    elif rng.random() < 0.3 * (not sums) or not causes:
        amount = float(rng.integers(-3, 4)) * float(step)
        entry["tables"] = [{"columns": ["sex", "age"], "rows": [["female", 21, amount]]}]
        effects.append(_if("female", 21, amount))
    return entry, effects


def _per_unit(name: str, slope: float) -> Effect:
    def effect(record: Mapping[str, Any]) -> Fraction:
        number = record[name]
        return Fraction(0) if number is None else Fraction(slope) * Fraction(number)

    return effect


def _if(sex: str, age: int | None, amount: float) -> Effect:
    def effect(record: Mapping[str, Any]) -> Fraction:
        applies = record["sex"] == sex and age in (None, record["age"])
        return Fraction(amount) if applies else Fraction(0)

    return effect


def _bands(
    rng: np.random.Generator, space: FeatureSpace
) -> tuple[Entry, Callable[[Mapping[str, Any]], object]]:
    """Draw bands of jobs by age."""
    known = {
        age: {job: f"band {rng.integers(0, 3)}" for job in JOBS}
        for age in oracle.values_of(space.attribute("age"))
    }
    groups = []
    for age, bands in known.items():
        table: dict[str, list[str]] = {}
        for job, label in bands.items():
            table.setdefault(label, []).append(job)
        groups.append({"when": {"age": age}, "map": table})

    def band(record: Mapping[str, Any]) -> object:
        return None if record["job"] is None else known[int(record["age"])][record["job"]]

    return {"column": "job", "bands": groups}, band


def _quantiles(
    rng: np.random.Generator, space: FeatureSpace
) -> tuple[Entry, Callable[[Mapping[str, Any], Mapping[str, Any]], object]]:
    """Draw shares of jobs by age, in tenths."""
    known = {}
    for age in oracle.values_of(space.attribute("age")):
        first, second = sorted(rng.choice(range(1, 10), 2, replace=False).tolist())
        tenths = [first, second - first, 10 - second]
        known[age] = {job: Fraction(n, 10) for job, n in zip(JOBS, tenths, strict=True)}
    groups = [
        {"when": {"age": age}, "shares": {job: float(share) for job, share in shares.items()}}
        for age, shares in known.items()
    ]

    def moved(own: Mapping[str, Any], other: Mapping[str, Any]) -> object:
        if own["job"] is None or own["age"] == other["age"]:
            return own["job"]
        below = JOBS[: JOBS.index(own["job"]) + 1]
        rank = sum(known[int(own["age"])][job] for job in below)
        total = Fraction(0)
        for job in JOBS:
            total += known[int(other["age"])][job]
            if total >= rank:
                return job
        raise AssertionError(rank)

    return {"column": "job", "quantiles": groups}, moved
