"""Tables: the paper's, with our figure beside every cell, and ours that it has no counterpart of."""

from collections.abc import Sequence
from dataclasses import dataclass

from feta.train.chooser import SPAN
from feta_paper.measurements import Measurements
from feta_paper.paper import COUNTERPART, NAMES, SAME_CELL, TableName, cells, is_clock
from feta_paper.quantities import (
    by_construction,
    found,
    is_another,
    papers,
    placed,
    why_missing,
)
from feta_paper.ways import SOME_COUNTERPARTS
from feta_paper.wording import MARKS, ratio, time_with_spread, with_spread

ARMS = {
    "nn_b": "NN_b, as trained",
    "majority": "Majority class",
    "vote": "CE-Fair prediction",
    "empirical_vote": "CE-Fair prediction, empirical weights",
    "trained": "CE-Fair training",
    "trained_vote": "CE-Fair training + prediction",
    "trained_empirical_vote": "CE-Fair training + prediction, empirical weights",
    "other_batch": "CE-Fair training, the other kind of batch",
    "other_batch_vote": "CE-Fair training, the other kind of batch, + prediction",
    "default": "FETA's default training",
    "default_vote": "FETA's default training + prediction",
    "span": f"Span training ({SPAN})",
    "span_vote": "Span training + prediction",
    "blind_fixed": "Blind, paper's protocol, one fixed subset",
    "blind_fresh": "Blind, paper's protocol, a fresh subset each epoch",
    "blind_full": "Blind, full protocol",
    "blind_logistic": "Blind logistic regression",
    "lcifr": "LCIFR, γ = 1",
    "lcifr_all": "LCIFR, γ = 1, all sensitive attributes varied",
    "lcifr_original": "LCIFR, its authors' γ and encoder",
    "chosen": "The chooser's pick",
    "printed": "Algorithm 1 as printed",
    "printed_trained": "Algorithm 1 as printed, after CE-Fair training",
    "forward": "Forward pass",
    "counting": "Counting",
}
# Steps that are no approach.
STEPS = {
    "start": "NN_b once more, its best epoch",
    "blind_paper": "Blind, paper's protocol, both subsets",
    "votes": "Timing fair decisions",
    "ways": "Timing ways to count",
}
QUANTITIES = {
    "accuracy": "accuracy, %",
    "flip_rate": "flip rate, %",
    "ce_rate": "CE rate, %",
    "ce_rate_real": "CE rate, age a real number, %",
    "ce_rate_categories": "CE rate, categorical attributes only, %",
    "certified": "certified, %",
    "uncertified": "without a certificate, %",
    "single_seconds": "time of one person",
    "single_ratio": "ratio to a forward pass of one person",
    "seconds": "time a person, in a batch",
    "ratio": "ratio to a forward pass of the batch",
    "treated_apart": "people treated apart by a tie",
    "tied": "people with a tie",
    "naive_seconds": "enumeration, one by one: a person",
    "naive_total": "enumeration, one by one: a test fold",
    "vectorized_seconds": "enumeration, vectorized: a person",
    "vectorized_total": "enumeration, vectorized: a test fold",
    "milp_find_seconds": "first counterexample by MILP: a person",
    "milp_seconds": "counterexample-guided counting by MILP: a person",
    "milp_total": "counterexample-guided counting by MILP: a test fold",
    "compiled_seconds": "compiled search: a person",
    "compiled_total": "compiled search: a test fold",
}


@dataclass(frozen=True, slots=True)
class Cell:
    """What a field of a table says, and where it lies beside the paper's figure."""

    text: str
    mark: str = ""
    absent: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A table ready to print: a heading a column; the first cells of a row name it."""

    title: str
    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    named: int = 2  # columns that name a row; the others hold figures


def step_title(name: str) -> str:
    """Name a step for people."""
    words = (ARMS | STEPS).get(name.removeprefix("raw."), name)
    return f"{words}, raw inputs" if name.startswith("raw.") else words


def ours(measured: Measurements, key: str) -> Cell:
    """Give our figure for a key, or say that there is none and why."""
    summary = found(measured, key)
    if summary is None:
        if by_construction(key):
            return Cell("0, by construction")
        reason = why_missing(measured, key)
        return Cell(f"not measured: {reason}" if reason else "not measured", absent=True)
    where = placed(measured, key)
    return Cell(shown(key, measured), MARKS[where] if where else "")


def shown(key: str, measured: Measurements) -> str:
    """Write a measured figure in its own unit; fewer folds than were run are said."""
    summary = found(measured, key)
    assert summary is not None  # callers ask for what they have seen
    fewer = f" ({summary.n} of {measured.folds} folds)" if 1 <= summary.n < measured.folds else ""
    if key.endswith("ratio"):
        return ratio(summary) + fewer
    return (time_with_spread(summary) if is_clock(key) else with_spread(summary)) + fewer


def paper_column(measured: Measurements) -> str:
    """Head the paper's column; another data set is named as such."""
    if not is_another(measured):
        return "paper"
    name = NAMES.get(COUNTERPART.get(measured.dataset, ""), "no data set of its own")
    return f"paper, {name} (another data set)"


def _paper_cell(measured: Measurements, key: str, table: TableName) -> Cell:
    dataset = COUNTERPART.get(measured.dataset)
    known = cells(table, dataset).get(SAME_CELL.get(key, key)) if dataset else None
    if known is None and key == "vote.single_ratio":
        known = papers(measured, key)
    if known is None:
        return Cell("–", absent=True)
    unit = " ×" if key.endswith("ratio") else " s" if is_clock(key) else ""
    return Cell(f"{int(known.mean):,}{unit}" if unit == " ×" else known.text + unit)


def _beside(
    measured: Measurements, title: str, caption: str, keys: Sequence[str], table: TableName | None
) -> Table:
    """Lay out keys a row each: ours, and the paper's if it has such a table."""
    keys = [key for key in keys if not _extra(measured, key)]
    rows = tuple(
        (
            *_named(keys, place),
            ours(measured, key),
            *((_paper_cell(measured, key, table),) if table else ()),
        )
        for place, key in enumerate(keys)
    )
    columns = ("approach", "figure", measured.title, *((paper_column(measured),) if table else ()))
    return Table(title, caption, columns, rows)


def _extra(measured: Measurements, key: str) -> bool:
    """Say whether a key is one that runs may leave out without a word."""
    extra = key.startswith(("lcifr_all.", "printed_trained."))
    return extra and found(measured, key) is None and not why_missing(measured, key)


def _named(keys: Sequence[str], place: int) -> tuple[Cell, Cell]:
    arm, _, quantity = keys[place].rpartition(".")
    again = place > 0 and keys[place - 1].rpartition(".")[0] == arm
    return Cell("" if again else ARMS[arm]), Cell(QUANTITIES[quantity])


def _keys(*named: str) -> list[str]:
    """Spell out "arm: quantity quantity"."""
    pairs = [one.split(": ") for one in named]
    return [f"{arm}.{quantity}" for arm, quantities in pairs for quantity in quantities.split()]


def paper_tables(measured: Measurements) -> list[Table]:
    """Give the paper's seven tables with our figures."""
    counted = (
        "the paper counted on IPUMS Adult only: 71.50 s a person one by one, 9.15 s by its MILP. "
    )
    own = COUNTERPART.get(measured.dataset) == "ipums"
    return [
        _beside(measured, "Prediction (Table 1)", "What guaranteed fair decisions cost in accuracy. Flip rate: people whose decision the vote changes.",
            _keys("nn_b: accuracy flip_rate", "majority: accuracy flip_rate", "vote: accuracy flip_rate"), "Table 1"),
        _beside(measured, "Training, before and after (Table 2)", "CE rate: people with a counterpart who is decided otherwise.",
            _keys("nn_b: accuracy flip_rate ce_rate", "trained: accuracy flip_rate ce_rate"), "Table 2"),
        _beside(measured, "Training + prediction against prediction alone (Table 3, Figure 2)",
            "Times are of different machines, and are not marked. Like is divided by like: one person asked alone by torch's forward pass of one person, as in the paper; a batch of up to 1,000 by the forward pass of the same batch.",
            _keys("vote: accuracy single_seconds single_ratio seconds ratio", "trained_vote: accuracy single_seconds single_ratio seconds ratio", "forward: single_seconds seconds"), "Table 3"),
        _beside(measured, "Without the sensitive attributes: blind networks (Table 4)",
            "The paper trains its blind network as long as CE-Fair training and on the same share ρ of the rows (100 % for German, 1 % for IPUMS Adult, 2 % for Law School), and does not say whether the subset stays the same. All of these are fair by construction; the full protocol has the rows and epochs NN_b has.",
            _keys("blind_fixed: accuracy", "blind_fresh: accuracy", "blind_full: accuracy", "blind_logistic: accuracy", "trained_vote: accuracy"), "Table 4"),
        _beside(measured, "LCIFR (Table 5)",
            "The paper counts LCIFR's counterexamples over categorical attributes only, everybody else's over all counterparts; here both are given. Certified: by LCIFR itself, over all counterparts.",
            _keys("nn_b: accuracy ce_rate", "lcifr: accuracy ce_rate_categories ce_rate certified", "lcifr_all: accuracy ce_rate_categories ce_rate certified", "trained_vote: accuracy ce_rate"), "Table 5"),
        _beside(measured, "LCIFR with its authors' γ and encoder (Table 6)",
            "What the paper prints as LCIFR's CE rate here is the share without a certificate over the categorical attributes; the CE rate over the same cannot be higher. LCIFR's authors vary race and sex on Law School, and sex alone on German and Adult, where here all categorical sensitive attributes vary."
            + ("" if not own else " The paper has no such table for IPUMS Adult."),
            _keys("nn_b: accuracy ce_rate", "lcifr_original: accuracy uncertified ce_rate_categories ce_rate", "trained_vote: accuracy ce_rate"), "Table 6"),
        _beside(measured, "Counting against enumeration (Table 7)",
            ("" if own else counted[0].upper() + counted[1:]) + f"Here everybody has {measured.counterparts:,} counterparts. A test fold is a fifth of the {measured.rows:,} rows. One by one is timed on {SOME_COUNTERPARTS} counterparts at most, and extrapolated; the MILP on a few people with and a few without a counterexample, weighted by how many there are of each. Times are of different machines.",
            _keys("counting: naive_seconds naive_total vectorized_seconds vectorized_total milp_find_seconds milp_seconds milp_total compiled_seconds compiled_total"), "Table 7"),
    ]  # fmt: skip


def our_tables(measured: Measurements) -> list[Table]:
    """Give what the paper does not print, where it was measured or should have been."""
    tables = [
        _beside(measured, "What Algorithm 1 as printed does on ties", "On an exact tie it changes everybody's decision, so that two people who differ in sensitive attributes only swap places and stay apart. Counted over a test fold; FETA decides ties in favor of both.",
            _keys("printed: tied treated_apart", "printed_trained: tied treated_apart"), None),
        _beside(measured, "Beyond the paper", "The same certificate with other weights; CE-Fair training with the kind of batch that the paper did not choose here, all people or those with counterexamples; FETA's own training; and what the chooser picks on validation.",
            _keys("empirical_vote: accuracy", "trained_empirical_vote: accuracy", "other_batch: accuracy flip_rate ce_rate", "other_batch_vote: accuracy", "default: accuracy flip_rate ce_rate", "default_vote: accuracy",
                  "span: accuracy flip_rate ce_rate", "span_vote: accuracy", "chosen: accuracy"), None),
    ]  # fmt: skip
    if measured.dataset == "law" or _has(measured, "raw."):
        tables.append(_variant(measured, "Standardized and raw inputs", "The paper does not say how inputs were scaled.", "raw", other="raw inputs", usual="scaled inputs"))  # fmt: skip
    if measured.dataset in {"adult", "ipums"} or _has(measured, "sample."):
        tables.append(_variant(measured, "The full test fold, and the paper's share of it", "The paper tested IPUMS Adult on 1 % of each test fold.", "sample", other="the paper's ρ of the fold", usual="full test fold"))  # fmt: skip
    if measured.dataset != "law" or any("ce_rate_real" in key for key in measured.figures):
        tables.append(_ages(measured))
    return tables


def _has(measured: Measurements, start: str) -> bool:
    return any(key.startswith(start) for key in [*measured.figures, *measured.times])


def _variant(
    measured: Measurements, title: str, caption: str, variant: str, *, other: str, usual: str
) -> Table:
    """Set a variant beside the usual way, and the paper's figures beside both."""
    known = [
        key.removeprefix(f"{variant}.") for key in measured.figures if key.startswith(f"{variant}.")
    ]
    named = _keys("nn_b: accuracy flip_rate ce_rate", "majority: accuracy", "vote: accuracy", "trained: accuracy flip_rate ce_rate",
                  "trained_vote: accuracy", "blind_fixed: accuracy", "blind_fresh: accuracy")  # fmt: skip
    extra = sorted(key for key in known if key not in named and _nameable(key))
    keys = [*named, *extra]
    rows = []
    for place, key in enumerate(keys):
        paper = papers(measured, key)
        cell = Cell(paper.text) if paper else Cell("–", absent=True)
        rows.append(
            (*_named(keys, place), ours(measured, key), ours(measured, f"{variant}.{key}"), cell)
        )
    columns = (
        "approach",
        "figure",
        usual,
        other,
        paper_column(measured),
    )
    return Table(f"{title}: {measured.title}", caption, columns, tuple(rows))


def _nameable(key: str) -> bool:
    arm, _, quantity = key.rpartition(".")
    return arm in ARMS and quantity in QUANTITIES


def _ages(measured: Measurements) -> Table:
    """Set the CE rate over whole years beside that over real ages."""
    rows = tuple(
        (Cell(ARMS[arm]), ours(measured, f"{arm}.ce_rate"), ours(measured, f"{arm}.ce_rate_real"))
        for arm in ("nn_b", "trained")
    )
    caption = "With real ages a person has more counterparts, so the rate can only be equal or higher. The paper does not say which it prints."
    columns = (
        "approach",
        f"{measured.title}, age in whole years, %",
        f"{measured.title}, age a real number, %",
    )
    return Table("CE rate with whole and with real ages", caption, columns, rows, named=1)
