"""The paper's conclusions: differences between two approaches, fold by fold."""

from dataclasses import dataclass

from feta_paper.measurements import Measurements
from feta_paper.paper import COUNTERPART, NAMES
from feta_paper.quantities import fold_values, other_dataset, paper_figure, why_missing
from feta_paper.statistics import Difference, paired
from feta_paper.tables import ABSENT, Cell, Table, paper_column
from feta_paper.wording import signed

# Name, first key, second key.
COMPARED = (
    ("Prediction against NN_b: accuracy", "vote.accuracy", "nn_b.accuracy"),
    ("Prediction against the majority class: accuracy", "vote.accuracy", "majority.accuracy"),
    ("Training against NN_b: accuracy", "trained.accuracy", "nn_b.accuracy"),
    ("Training against NN_b: flip rate", "trained.flip_rate", "nn_b.flip_rate"),
    ("Training against NN_b: CE rate", "trained.ce_rate", "nn_b.ce_rate"),
    (
        "Training + prediction against prediction alone: accuracy",
        "trained_vote.accuracy",
        "vote.accuracy",
    ),
    ("Training + prediction against NN_b: accuracy", "trained_vote.accuracy", "nn_b.accuracy"),
    (
        "Training + prediction against blind (fixed subset): accuracy",
        "trained_vote.accuracy",
        "blind_fixed.accuracy",
    ),
    (
        "Training + prediction against blind (fresh subsets): accuracy",
        "trained_vote.accuracy",
        "blind_fresh.accuracy",
    ),
    ("Training + prediction against LCIFR: accuracy", "trained_vote.accuracy", "lcifr.accuracy"),
    (
        "Training + prediction against blind (full protocol): accuracy",
        "trained_vote.accuracy",
        "blind_full.accuracy",
    ),
    (
        "Empirical against uniform weights, on NN_b: accuracy",
        "empirical_vote.accuracy",
        "vote.accuracy",
    ),
    (
        "Empirical against uniform weights, trained: accuracy",
        "trained_empirical_vote.accuracy",
        "trained_vote.accuracy",
    ),
    (
        "Default against the paper's training, with prediction: accuracy",
        "default_vote.accuracy",
        "trained_vote.accuracy",
    ),
    (
        "Span against the paper's training, with prediction: accuracy",
        "span_vote.accuracy",
        "trained_vote.accuracy",
    ),
    ("Span against the paper's training: CE rate", "span.ce_rate", "trained.ce_rate"),
    (
        "The chooser's pick against blind (full protocol): accuracy",
        "chosen.accuracy",
        "blind_full.accuracy",
    ),
)


@dataclass(frozen=True, slots=True)
class Claim:
    """A difference in this run, and the paper's if it prints both figures."""

    words: str
    left: str
    right: str
    here: Difference | None
    paper: float | None
    paper_on: str  # name of the data set if the paper's difference is of another one

    @property
    def outcome(self) -> str:
        """What the folds show, in a few words."""
        if self.here is None:
            return "not measured"
        if self.here.interval is None:
            return "one fold: no interval"
        if self.here.sign == 0:
            return "≈ zero is inside"
        if not self.paper:
            return "▲ above zero" if self.here.sign > 0 else "▼ below zero"
        if self.paper_on:  # no mark: results on two data sets cannot agree
            return f"{'as' if self.agrees else 'unlike'} on {self.paper_on}"
        return "✓ same direction" if self.agrees else "✗ other direction"

    @property
    def agrees(self) -> bool | None:
        """Whether the sign is the paper's; None if one of the two has no sign."""
        if self.here is None or not self.here.sign or not self.paper:
            return None
        return (self.here.sign > 0) == (self.paper > 0)


def claims(measured: Measurements) -> list[Claim]:
    """Compute all differences."""
    return [_claim(measured, *compared) for compared in COMPARED]


def _claim(measured: Measurements, words: str, left: str, right: str) -> Claim:
    first, second = paper_figure(measured, left), paper_figure(measured, right)
    paper = round(first.mean - second.mean, 3) if first and second else None
    paper_on = NAMES[COUNTERPART[measured.dataset]] if other_dataset(measured) else ""
    return Claim(words, left, right, difference(measured, left, right), paper, paper_on)


def difference(measured: Measurements, left: str, right: str) -> Difference | None:
    """Pair two keys fold by fold."""
    first, second = fold_values(measured, left), fold_values(measured, right)
    return paired(first, second, seed=measured.seed)


def claims_table(measured: Measurements) -> Table:
    """Return the table of all differences."""
    rows = tuple(_row(measured, claim) for claim in claims(measured))
    folds = f"{measured.folds} fold{'s' if measured.folds != 1 else ''}"
    caption = (
        "first minus second, in points. The interval is the middle 95 % of 10,000 bootstrap "
        f"resamples of the folds (seed {measured.seed}). An interval over {folds} is only a hint. "
        "Folds share most of their training rows, so it is narrower than with independent data, "
        "and with so few folds it is coarse. The paper's difference is that of its two means."
    )
    columns = (
        "difference",
        measured.title,
        "95 % interval",
        "folds above 0",
        paper_column(measured),
        "shown here",
    )
    return Table("Differences, paired by fold", caption, columns, rows, named=1)


def _row(measured: Measurements, claim: Claim) -> tuple[Cell, ...]:
    paper = ABSENT if claim.paper is None else Cell(signed(claim.paper))
    here = claim.here
    if here is None:
        reason = why_missing(measured, claim.left) or why_missing(measured, claim.right)
        text = f"not measured: {reason}" if reason else "not measured"
        return Cell(claim.words), Cell(text, absent=True), ABSENT, ABSENT, paper, ABSENT
    interval = f"{signed(here.interval[0])} to {signed(here.interval[1])}" if here.interval else "–"
    return (
        Cell(claim.words),
        Cell(f"{signed(here.mean)} ± {here.std:.2f}" if here.n > 1 else signed(here.mean)),
        Cell(interval),
        Cell(f"{here.positive} of {here.n}"),
        paper,
        Cell(claim.outcome),
    )
