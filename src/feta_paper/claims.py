"""Claims: what the paper concludes, as differences between two approaches, fold by fold."""

from dataclasses import dataclass

from feta_paper.measurements import Measurements
from feta_paper.paper import COUNTERPART, NAMES
from feta_paper.quantities import figures, is_another, papers, why_missing
from feta_paper.statistics import Difference, paired
from feta_paper.tables import Cell, Table, paper_column
from feta_paper.wording import signed

COMPARED = (
    ("Prediction against NN_b: accuracy", "vote.accuracy", "nn_b.accuracy"),
    ("Prediction against the majority class: accuracy", "vote.accuracy", "majority.accuracy"),
    ("Training against NN_b: accuracy", "trained.accuracy", "nn_b.accuracy"),
    ("Training against NN_b: flip rate", "trained.flip_rate", "nn_b.flip_rate"),
    ("Training against NN_b: CE rate", "trained.ce_rate", "nn_b.ce_rate"),
    ("Training + prediction against prediction alone: accuracy", "trained_vote.accuracy", "vote.accuracy"),
    ("Training + prediction against NN_b: accuracy", "trained_vote.accuracy", "nn_b.accuracy"),
    ("Training + prediction against blind (fixed subset): accuracy", "trained_vote.accuracy", "blind_fixed.accuracy"),
    ("Training + prediction against blind (fresh subsets): accuracy", "trained_vote.accuracy", "blind_fresh.accuracy"),
    ("Training + prediction against LCIFR: accuracy", "trained_vote.accuracy", "lcifr.accuracy"),
    ("Training + prediction against blind (full protocol): accuracy", "trained_vote.accuracy", "blind_full.accuracy"),
    ("Empirical against uniform weights, on NN_b: accuracy", "empirical_vote.accuracy", "vote.accuracy"),
    ("Empirical against uniform weights, trained: accuracy", "trained_empirical_vote.accuracy", "trained_vote.accuracy"),
    ("Default against the paper's training, with prediction: accuracy", "default_vote.accuracy", "trained_vote.accuracy"),
    ("Span against the paper's training, with prediction: accuracy", "span_vote.accuracy", "trained_vote.accuracy"),
    ("Span against the paper's training: CE rate", "span.ce_rate", "trained.ce_rate"),
    ("The chooser's pick against blind (full protocol): accuracy", "chosen.accuracy", "blind_full.accuracy"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Claim:
    """A difference here, and the paper's where it has both figures."""

    words: str
    left: str
    right: str
    here: Difference | None
    paper: float | None
    paper_on: str  # another data set, if the paper's difference is of one

    @property
    def outcome(self) -> str:
        """Say, in a word or two, what the folds show."""
        if self.here is None:
            return "not measured"
        if self.here.interval is None:
            return "one fold: no interval"
        if self.here.sign == 0:
            return "≈ zero is inside"
        if not self.paper:
            return "▲ above zero" if self.here.sign > 0 else "▼ below zero"
        if self.paper_on:  # no mark: two data sets cannot agree
            return f"{'as' if self.agrees else 'unlike'} on {self.paper_on}"
        return "✓ same direction" if self.agrees else "✗ other direction"

    @property
    def agrees(self) -> bool | None:
        """Whether the sign is the paper's; None if one of the two has no sign."""
        if self.here is None or not self.here.sign or not self.paper:
            return None
        return (self.here.sign > 0) == (self.paper > 0)


def claims(measured: Measurements) -> list[Claim]:
    """Take every difference that is compared."""
    return [_claim(measured, *one) for one in COMPARED]


def _claim(measured: Measurements, words: str, left: str, right: str) -> Claim:
    one, other = papers(measured, left), papers(measured, right)
    paper = round(one.mean - other.mean, 3) if one and other else None
    another = NAMES[COUNTERPART[measured.dataset]] if is_another(measured) else ""
    return Claim(words, left, right, difference(measured, left, right), paper, another)


def difference(measured: Measurements, left: str, right: str) -> Difference | None:
    """Pair two keys fold by fold."""
    return paired(figures(measured, left), figures(measured, right), seed=measured.seed)


def claims_table(measured: Measurements) -> Table:
    """Lay the differences out."""
    rows = tuple(_row(measured, one) for one in claims(measured))
    few = f"An interval over {measured.folds} fold{'s' if measured.folds != 1 else ''} is little: folds share most of their training rows, so it is narrower than fresh data would make it, and with so few it is coarse. Read it as a hint."  # fmt: skip
    caption = f"First minus second, in points, paired by fold; the interval is the middle 95 % of 10,000 bootstrap resamples of the folds (seed {measured.seed}). {few} The paper's is the difference of its two means."
    columns = ("difference", measured.title, "95 % interval", "folds above 0", paper_column(measured), "shown here")  # fmt: skip
    return Table("Differences, paired by fold", caption, columns, rows, named=1)


def _row(measured: Measurements, claim: Claim) -> tuple[Cell, ...]:
    paper = Cell("–", absent=True) if claim.paper is None else Cell(signed(claim.paper))
    here = claim.here
    if here is None:
        reason = why_missing(measured, claim.left) or why_missing(measured, claim.right)
        absent = Cell(f"not measured: {reason}" if reason else "not measured", absent=True)
        return Cell(claim.words), absent, Cell("–", absent=True), Cell("–", absent=True), paper, Cell("–", absent=True)  # fmt: skip
    interval = f"{signed(here.interval[0])} to {signed(here.interval[1])}" if here.interval else "–"
    return (
        Cell(claim.words),
        Cell(f"{signed(here.mean)} ± {here.std:.2f}" if here.n > 1 else signed(here.mean)),
        Cell(interval),
        Cell(f"{here.positive} of {here.n}"),
        paper,
        Cell(claim.outcome),
    )
