"""The answer about everybody: proved shares, an estimate, a counterexample, regions."""

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from feta.everybody.regions import Region
from feta.everybody.sequence import Interval
from feta.model import Model
from feta.scorer.protocol import Provenance
from feta.verdict.counterexample import Counterexample

# Digits after the point of a percentage, at most.
MOST_DIGITS = 30


@dataclass(frozen=True, slots=True)
class Draws:
    """People who were drawn and decided exactly, one by one."""

    people: int = 0
    unfair: int = 0
    undecided: int = 0


@dataclass(frozen=True, slots=True)
class Moment:
    """The answer at one moment, for a plot over time."""

    seconds: float
    fair: Fraction
    unfair: Fraction
    low: float
    high: float


@dataclass(frozen=True, slots=True, eq=False)
class Everybody:
    """How many people of a population are treated fairly.

    `fair` and `unfair` are proved: exact fractions, lower bounds of the true shares. Together with
    `undecided` they sum to 1. `estimate` contains the true share of people who are treated unfairly
    with the stated confidence, at all moments of a run at once.
    """

    model: Model
    population: str  # in words
    fair: Fraction
    unfair: Fraction
    draws: Draws
    estimate: Interval
    counterexample: Counterexample | None
    leaves: tuple[Region, ...]  # of the tree that separates unfair people from others
    method: str  # what proved the shares: "structure", "enumeration", "branch" or "" for nothing
    unproved: str  # why nothing is proved, or "" if something can be
    seconds: float
    provenance: Provenance = "proved"
    boxes: int = 0
    history: tuple[Moment, ...] = ()

    @property
    def undecided(self) -> Fraction:
        """The share of people about whom nothing is proved."""
        return 1 - self.fair - self.unfair

    @property
    def regions(self) -> tuple[Region, ...]:
        """Where unfairness lives: the leaves with unfair people, those with most of them first."""
        unfair = [leaf for leaf in self.leaves if leaf.unfair]
        return tuple(sorted(unfair, key=lambda leaf: -leaf.unfair))

    @property
    def nobody(self) -> bool:
        """Whether it is proved that nobody is treated unfairly."""
        return self.fair == 1

    @property
    def somebody(self) -> bool:
        """Whether somebody is treated unfairly, shown by an exact counterexample."""
        return self.counterexample is not None

    def is_below(self, bar: float) -> bool | None:
        """Return whether the share of unfair people is at most a bar; None if it is not known.

        Proved shares decide first. The estimate decides with its confidence only. The bar is the
        decimal number as it is written.
        """
        limit = Fraction(str(bar))
        if 1 - self.fair <= limit or Fraction(self.estimate.high) <= limit:
            return True
        if self.unfair > limit or Fraction(self.estimate.low) > limit:
            return False
        return None

    def to_html(self, path: str | Path, *, name: str = "") -> None:
        """Write the answer as one HTML page that uses no network and no script."""
        # Imported on call: `report` is a layer above `everybody`.
        from feta.io.audit_folder import write_page  # noqa: PLC0415
        from feta.report.everybody_html import everybody_html  # noqa: PLC0415

        write_page(Path(path), everybody_html(self, name=name))

    def sentences(self) -> list[str]:
        """Return the answer in plain words; each sentence names the population or refers to it."""
        return [*self._proved(), *self._estimated(), *self._found()]

    def _proved(self) -> list[str]:
        people = self.population
        if self.nobody:
            how = {
                "structure": "the score cannot depend on the sensitive columns",
                "enumeration": "everybody was decided exactly",
            }.get(self.method, "bounds over boxes of people cover everybody")
            return [f"Of {people}: nobody is treated unfairly. This is proved: {how}."]
        if self.unproved:
            return [f"Of {people}: no share is proved, because {self.unproved}."]
        return [
            f"Of {people}: at least {down(self.fair)} are proved to get the same decision whatever "
            f"their sensitive values are, at least {down(self.unfair)} are proved not to; "
            f"{up(self.undecided)} are undecided."
        ]

    def _estimated(self) -> list[str]:
        n = self.draws.people
        if not n or self.undecided == 0:
            return []
        confidence = f"{100 * self.estimate.confidence:g} %"
        unknown = f", {self.draws.undecided:,} remain undecided" if self.draws.undecided else ""
        return [
            f"Estimate for {self.population}: between {down(self.estimate.low)} and "
            f"{up(self.estimate.high)} are treated unfairly ({confidence} confidence at every "
            f"moment; {self.draws.unfair:,} of {n:,} people drawn are unfair{unknown}). "
            "This is sampled, not proved."
        ]

    def _found(self) -> list[str]:
        if self.counterexample is not None:
            return [
                f"Among {self.population}, somebody is treated unfairly: the counterexample was "
                "evaluated again exactly."
            ]
        if self.nobody:
            return []
        return [f"Among {self.population}, nobody who is treated unfairly was found so far."]


def down(share: Fraction | float) -> str:
    """Return a percentage that is not above a share."""
    return _percent(Fraction(share), up=False)


def up(share: Fraction | float) -> str:
    """Return a percentage that is not below a share."""
    return _percent(Fraction(share), up=True)


def _percent(share: Fraction, *, up: bool) -> str:
    """Round outward: four digits after the point, and more where the share is small or near 1."""
    if share <= 0 or share >= 1:
        return "0 %" if share <= 0 else "100 %"
    for digits in range(4, MOST_DIGITS, 2):
        scaled = share * 100 * 10**digits
        number = -((-scaled.numerator) // scaled.denominator) if up else int(scaled)
        if 0 < number < 100 * 10**digits:
            whole, rest = divmod(number, 10**digits)
            return f"{whole}.{rest:0{digits}d}".rstrip("0").rstrip(".") + " %"
    return "100 %" if up else "0 %"
