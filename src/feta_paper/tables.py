"""The paper's tables with our figures, and tables that the paper does not have."""

from collections.abc import Sequence
from dataclasses import dataclass

from feta_paper.labels import ARMS, QUANTITIES, has_label
from feta_paper.measurements import Measurements
from feta_paper.paper import COUNTERPART, NAMES, SAME_CELL, TableName, cells, is_time
from feta_paper.quantities import (
    other_dataset,
    paper_figure,
    place_of,
    summary_of,
    why_missing,
    zero_by_construction,
)
from feta_paper.timing import LOOP_COUNTERPARTS
from feta_paper.wording import MARKS, ratio, time_with_spread, with_spread


@dataclass(frozen=True, slots=True)
class Cell:
    """A text, and its comparison with the paper's figure."""

    text: str
    mark: str = ""
    absent: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A table ready to print; the first `named` cells of a row are its name."""

    title: str
    caption: str  # starts in lower case if it continues the title
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    named: int = 2


ABSENT = Cell("–", absent=True)


def our_cell(measured: Measurements, key: str) -> Cell:
    """Return our figure for a key, or that it was not measured and why."""
    if summary_of(measured, key) is None:
        if zero_by_construction(key):
            return Cell("0, by construction")
        reason = why_missing(measured, key)
        return Cell(f"not measured: {reason}" if reason else "not measured", absent=True)
    place = place_of(measured, key)
    return Cell(_format(key, measured), MARKS[place] if place else "")


def _format(key: str, measured: Measurements) -> str:
    """Format a measured figure in its unit; add the number of folds if some are missing."""
    summary = summary_of(measured, key)
    assert summary is not None  # the caller has checked
    fewer = f" ({summary.n} of {measured.folds} folds)" if 1 <= summary.n < measured.folds else ""
    if key.endswith("ratio"):
        return ratio(summary) + fewer
    return (time_with_spread(summary) if is_time(key) else with_spread(summary)) + fewer


def paper_column(measured: Measurements) -> str:
    """Return the heading of the paper's column; it names another data set as such."""
    if not other_dataset(measured):
        return "paper"
    name = NAMES.get(COUNTERPART.get(measured.dataset, ""), "no data set")
    return f"paper, {name} (another data set)"


def _paper_cell(measured: Measurements, key: str, table: TableName) -> Cell:
    dataset = COUNTERPART.get(measured.dataset)
    figure = cells(table, dataset).get(SAME_CELL.get(key, key)) if dataset else None
    if figure is None and key == "vote.single_ratio":
        figure = paper_figure(measured, key)
    if figure is None:
        return ABSENT
    unit = " ×" if key.endswith("ratio") else " s" if is_time(key) else ""
    return Cell(f"{int(figure.mean):,}{unit}" if unit == " ×" else figure.text + unit)


def _table(
    measured: Measurements, title: str, caption: str, keys: Sequence[str], table: TableName | None
) -> Table:
    """Build a table with one row per key: our figure, and the paper's if it has such a table."""
    keys = [key for key in keys if not _optional(measured, key)]
    rows = tuple(
        (
            *_row_names(keys, index),
            our_cell(measured, key),
            *((_paper_cell(measured, key, table),) if table else ()),
        )
        for index, key in enumerate(keys)
    )
    columns = ("approach", "figure", measured.title, *((paper_column(measured),) if table else ()))
    return Table(title, caption, columns, rows)


def _optional(measured: Measurements, key: str) -> bool:
    """Return whether a key is absent and may be left out without a reason."""
    optional = key.startswith(("lcifr_all.", "printed_trained."))
    return optional and summary_of(measured, key) is None and not why_missing(measured, key)


def _row_names(keys: Sequence[str], index: int) -> tuple[Cell, Cell]:
    """Name a row; the approach is empty if it is the same as in the row before."""
    arm, _, quantity = keys[index].rpartition(".")
    repeated = index > 0 and keys[index - 1].rpartition(".")[0] == arm
    return Cell("" if repeated else ARMS[arm]), Cell(QUANTITIES[quantity])


def _keys(*lines: str) -> list[str]:
    """Expand lines of the form "arm: quantity quantity"."""
    pairs = [line.split(": ") for line in lines]
    return [f"{arm}.{quantity}" for arm, quantities in pairs for quantity in quantities.split()]


def paper_tables(measured: Measurements) -> list[Table]:
    """Return the paper's seven tables with our figures."""
    return [
        _table(
            measured,
            "Prediction (Table 1)",
            "the cost of guaranteed fair decisions in accuracy. "
            "Flip rate: share of people whose decision the vote changes.",
            _keys(
                "nn_b: accuracy flip_rate",
                "majority: accuracy flip_rate",
                "vote: accuracy flip_rate",
            ),
            "Table 1",
        ),
        _table(
            measured,
            "Training, before and after (Table 2)",
            "CE rate: share of people with a counterpart who gets another decision.",
            _keys("nn_b: accuracy flip_rate ce_rate", "trained: accuracy flip_rate ce_rate"),
            "Table 2",
        ),
        _times_table(measured),
        _blind_table(measured),
        *_lcifr_tables(measured),
        _counting_table(measured),
    ]


def _times_table(measured: Measurements) -> Table:
    return _table(
        measured,
        "Training + prediction against prediction alone (Table 3, Figure 2)",
        "Times are from different machines, and are not marked. "
        "Each ratio compares equal amounts of work. The time of one person is divided by torch's "
        "forward pass of one person, as in the paper. The time of a batch of up to 1,000 "
        "is divided by the forward pass of the same batch.",
        _keys(
            "vote: accuracy single_seconds single_ratio seconds ratio",
            "trained_vote: accuracy single_seconds single_ratio seconds ratio",
            "forward: single_seconds seconds",
        ),
        "Table 3",
    )


def _blind_table(measured: Measurements) -> Table:
    return _table(
        measured,
        "Without the sensitive attributes: blind networks (Table 4)",
        "The paper trains its blind network as long as CE-Fair training, on the same share ρ of "
        "the rows: 100 % for German, 1 % for IPUMS Adult, 2 % for Law School. "
        "It does not state whether the subset is the same in every epoch. "
        "All of these models are fair by construction. "
        "The full protocol has the rows and epochs of NN_b.",
        _keys(
            "blind_fixed: accuracy",
            "blind_fresh: accuracy",
            "blind_full: accuracy",
            "blind_logistic: accuracy",
            "trained_vote: accuracy",
        ),
        "Table 4",
    )


def _lcifr_tables(measured: Measurements) -> tuple[Table, Table]:
    no_table = COUNTERPART.get(measured.dataset) == "ipums"
    return (
        _table(
            measured,
            "LCIFR (Table 5)",
            "The paper counts counterexamples of LCIFR over categorical attributes only, "
            "and those of all other approaches over all counterparts. Both are shown here. "
            "Certified: by LCIFR itself, over all counterparts.",
            _keys(
                "nn_b: accuracy ce_rate",
                "lcifr: accuracy ce_rate_categories ce_rate certified",
                "lcifr_all: accuracy ce_rate_categories ce_rate certified",
                "trained_vote: accuracy ce_rate",
            ),
            "Table 5",
        ),
        _table(
            measured,
            "LCIFR with its authors' γ and encoder (Table 6)",
            "The paper prints the share of people without a certificate over the categorical "
            "attributes as LCIFR's CE rate. The CE rate over these attributes cannot be higher. "
            "LCIFR's authors vary race and sex on Law School, and only sex on German and Adult. "
            "Here all categorical sensitive attributes vary."
            + (" The paper has no such table for IPUMS Adult." if no_table else ""),
            _keys(
                "nn_b: accuracy ce_rate",
                "lcifr_original: accuracy uncertified ce_rate_categories ce_rate",
                "trained_vote: accuracy ce_rate",
            ),
            "Table 6",
        ),
    )


def _counting_table(measured: Measurements) -> Table:
    elsewhere = (
        "The paper counted on IPUMS Adult only: 71.50 s per person one by one, 9.15 s by its MILP. "
    )
    return _table(
        measured,
        "Counting against enumeration (Table 7)",
        ("" if COUNTERPART.get(measured.dataset) == "ipums" else elsewhere)
        + f"Here every person has {measured.counterparts:,} counterparts. "
        f"A test fold is a fifth of the {measured.rows:,} rows. The time one by one is measured on "
        f"at most {LOOP_COUNTERPARTS} counterparts and extrapolated. The time of the MILP is "
        "measured on a few people with and a few without a counterexample, weighted by their "
        "numbers. Times are from different machines.",
        _keys(
            "counting: naive_seconds naive_total vectorized_seconds vectorized_total "
            "milp_find_seconds milp_seconds milp_total compiled_seconds compiled_total"
        ),
        "Table 7",
    )


def our_tables(measured: Measurements) -> list[Table]:
    """Return tables that the paper does not have, if they were or should have been measured."""
    tables = [_ties_table(measured), _beyond_table(measured)]
    if measured.dataset == "law" or _has(measured, "raw."):
        tables.append(
            _variant_table(
                measured,
                "raw",
                title="Standardized and raw inputs",
                caption="The paper does not state how inputs were scaled.",
                columns=("scaled inputs", "raw inputs"),
            )
        )
    if measured.dataset in {"adult", "ipums"} or _has(measured, "sample."):
        tables.append(
            _variant_table(
                measured,
                "sample",
                title="The full test fold, and the paper's share of it",
                caption="The paper tested IPUMS Adult on 1 % of each test fold.",
                columns=("full test fold", "the paper's ρ of the fold"),
            )
        )
    if measured.dataset != "law" or any("ce_rate_real" in key for key in measured.figures):
        tables.append(_ages_table(measured))
    return tables


def _ties_table(measured: Measurements) -> Table:
    return _table(
        measured,
        "Algorithm 1 as printed, on ties",
        "On an exact tie it changes the decision of every counterpart, so two people who differ "
        "only in sensitive attributes swap their decisions and still get different ones. "
        "Counted over a test fold. FETA decides a tie in favor of both.",
        _keys("printed: tied treated_apart", "printed_trained: tied treated_apart"),
        None,
    )


def _beyond_table(measured: Measurements) -> Table:
    return _table(
        measured,
        "Beyond the paper",
        "the same certificate with other weights, CE-Fair training with the kind of batch (all "
        "people, or those with counterexamples) that the paper did not choose here, FETA's "
        "default training, and the model that the chooser selects on validation people.",
        _keys(
            "empirical_vote: accuracy",
            "trained_empirical_vote: accuracy",
            "other_batch: accuracy flip_rate ce_rate",
            "other_batch_vote: accuracy",
            "default: accuracy flip_rate ce_rate",
            "default_vote: accuracy",
            "span: accuracy flip_rate ce_rate",
            "span_vote: accuracy",
            "chosen: accuracy",
        ),
        None,
    )


def _has(measured: Measurements, prefix: str) -> bool:
    return any(key.startswith(prefix) for key in [*measured.figures, *measured.times])


def _variant_table(
    measured: Measurements, variant: str, *, title: str, caption: str, columns: tuple[str, str]
) -> Table:
    """Compare the usual figures with those of a variant, and both with the paper's."""
    prefix = f"{variant}."
    measured_keys = [key.removeprefix(prefix) for key in measured.figures if key.startswith(prefix)]
    paper_keys = _keys(
        "nn_b: accuracy flip_rate ce_rate",
        "majority: accuracy",
        "vote: accuracy",
        "trained: accuracy flip_rate ce_rate",
        "trained_vote: accuracy",
        "blind_fixed: accuracy",
        "blind_fresh: accuracy",
    )
    extra = sorted(key for key in measured_keys if key not in paper_keys and has_label(key))
    keys = [*paper_keys, *extra]
    rows = []
    for index, key in enumerate(keys):
        paper = paper_figure(measured, key)
        figures = our_cell(measured, key), our_cell(measured, prefix + key)
        rows.append((*_row_names(keys, index), *figures, Cell(paper.text) if paper else ABSENT))
    headings = ("approach", "figure", *columns, paper_column(measured))
    return Table(f"{title}: {measured.title}", caption, headings, tuple(rows))


def _ages_table(measured: Measurements) -> Table:
    """Compare the CE rate over integer ages with that over real ages."""
    rows = tuple(
        (
            Cell(ARMS[arm]),
            our_cell(measured, f"{arm}.ce_rate"),
            our_cell(measured, f"{arm}.ce_rate_real"),
        )
        for arm in ("nn_b", "trained")
    )
    caption = (
        "With real ages a person has more counterparts, so the rate is equal or higher. "
        "The paper does not state which one it prints."
    )
    title = measured.title
    columns = ("approach", f"{title}, integer age, %", f"{title}, real age, %")
    return Table("CE rate with integer and with real ages", caption, columns, rows, named=1)
