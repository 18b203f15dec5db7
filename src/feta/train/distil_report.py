"""How well a distilled network imitates the fair decisions, on people it was not trained on."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from feta.arrays import Answers, Flags

# A distilled network below these is not a substitute for the fair decisions. Where few people are
# favorable, agreement alone says little.
LOW_AGREEMENT, LOW_SHARE = 0.97, 0.9


@dataclass(frozen=True, slots=True)
class DistilReport:
    """Shares of the held-out people; None where nobody is left to count.

    `kept`, `confirmed` and the levels are for two decisions only.
    """

    n_trained: int  # validation people included
    n_held_out: int
    agreement: float  # get the fair decision
    kept: float | None  # favorable, of those whose fair decision is favorable
    confirmed: float | None  # fair decision is favorable, of those who get the favorable one
    level: float | None  # get the favorable decision
    fair_level: float | None  # fair decision is favorable
    accuracy: float | None = None  # of the network, if there are labels
    fair_accuracy: float | None = None  # of the fair decisions

    @classmethod
    def of(
        cls,
        decisions: Answers,
        fair: Answers,
        labels: Answers | None,
        *,
        n_trained: int,
        two_sided: bool,
    ) -> Self:
        """Compare decisions of held-out people with their fair decisions and their labels."""
        same = decisions == fair
        return cls(
            n_trained=n_trained,
            n_held_out=len(fair),
            agreement=float(same.mean()),
            kept=_share(same, fair) if two_sided else None,
            confirmed=_share(same, decisions) if two_sided else None,
            level=float(decisions.mean()) if two_sided else None,
            fair_level=float(fair.mean()) if two_sided else None,
            accuracy=None if labels is None else float(np.mean(decisions == labels)),
            fair_accuracy=None if labels is None else float(np.mean(fair == labels)),
        )

    @property
    def warning(self) -> str:
        """What is wrong with the imitation; empty if it is good."""
        shares = [share for share in (self.kept, self.confirmed) if share is not None]
        if self.agreement >= LOW_AGREEMENT and min(shares, default=1.0) >= LOW_SHARE:
            return ""
        parts = "".join(f", {share:.1%}" for share in shares)
        return (
            f"the distilled network is a poor imitation of the fair decisions: got agreement and "
            f"shares of favorable decisions kept and confirmed of {self.agreement:.1%}{parts} on "
            f"{self.n_held_out} held-out people; expected {LOW_AGREEMENT:.0%} and {LOW_SHARE:.0%} "
            "or more; distil with more people, wider hidden layers or more epochs, or decide by "
            "the vote itself"
        )


def _share(same: Flags, favorable: Flags) -> float | None:
    """Return the share of favorable people whose two decisions are the same."""
    return float(same[favorable].mean()) if favorable.any() else None
