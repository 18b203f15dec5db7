"""Words for the results of a rule."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RuleWords:
    """The words for the results of a rule; the unit is untrusted, so it is never a format."""

    counterexample: str = "a counterpart with a different decision"  # of an unfair person
    same_outcome: str = "the same decision"  # of all counterparts of a fair person
    changes: str = "only changes"  # heading of the differences within a pair
    pair_names: tuple[str, str] = ("person", "counterpart")
    margin: str = "score"  # heading of the numbers of a pair
    violation: str = "The scores of the worst pairs differ by"  # before mean and maximum
    flip: tuple[str, str] = (
        "Fair decisions (feta predict) would change",
        "of the decisions.",
    )  # before and after the share of people
    likely: int | None = None  # the outcome whose probability a link gives to a score
    digits: str = ".3g"
    unit: str = ""

    def amount(self, value: float) -> str:
        """Format a score or a difference of scores."""
        return f"{value:{self.digits}}" + (f" {self.unit}" if self.unit else "")


OTHER_CLASS_MARGIN = "For the worst counterparts, the margin of the other class is"
