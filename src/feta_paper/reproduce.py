"""The work of `feta reproduce`: run the protocol on one data set, then write and print results."""

from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import typer

from feta.cli.exit_code import ExitCode
from feta.cli.output_path import check_folder
from feta.errors import SchemaError
from feta.io.sanitize import plain
from feta.train.import_torch import import_torch
from feta_paper.command import SEED
from feta_paper.fold import DatasetPeople, load_people
from feta_paper.gather import gather
from feta_paper.journal import RunJournal
from feta_paper.labels import ARMS
from feta_paper.markdown import markdown
from feta_paper.measurements import Measurements
from feta_paper.page import write_page
from feta_paper.protocol import FOLDS, protocol_of
from feta_paper.proxies.reproduce_proxies import NAME as PROXIES
from feta_paper.proxies.reproduce_proxies import reproduce_proxies
from feta_paper.resumable import JOURNAL, RESULTS, carry_out_resumably
from feta_paper.run import Run

TABLES = "reproduction.md"

# Folds of a quick run by default.
QUICK_FOLDS = 2

# Networks, and the vote of each.
SHOWN = (
    ("nn_b", "vote"),
    ("trained", "trained_vote"),
    ("default", "default_vote"),
    ("span", "span_vote"),
)


@dataclass(frozen=True, slots=True)
class ReproduceOptions:
    """The options of the command."""

    dataset: str
    folds: int | None
    quick: bool
    seed: int
    jobs: int
    out: Path | None


def run_reproduce(options: ReproduceOptions) -> ExitCode:
    """Run the protocol, or the rest of it; an interruption keeps finished steps."""
    if options.dataset == PROXIES:
        return _run_proxies(options)
    protocol = protocol_of(options.dataset, quick=options.quick)
    folds = options.folds
    if folds is None:
        folds = QUICK_FOLDS if options.quick else FOLDS
    if not 1 <= folds <= FOLDS:
        raise SchemaError(f"invalid --folds: got {folds}; expected an integer from 1 to {FOLDS}")
    out = options.out or Path(f"reproduction-{options.dataset}{'-quick' * options.quick}")
    check_folder(out)
    import_torch()  # fail now rather than in a worker
    people = load_people(protocol.dataset, protocol.rows, options.seed)  # fail before out exists
    out.mkdir(parents=True, exist_ok=True)
    run = Run(protocol, options.seed, out, folds)
    with RunJournal(out / JOURNAL, _settings(run, people)) as journal:
        typer.echo(
            f"{people.dataset.title}: {len(people.rows):,} rows, {folds} fold{'s' * (folds > 1)}, "
            f"{people.dataset.space.lattice.size:,} counterparts per person"
        )
        carry_out_resumably(run, journal, options.jobs)
        measured = gather(run, journal)
    measured.write(out / RESULTS)
    page = write_page(measured, out)
    (out / TABLES).write_text(markdown(measured), encoding="utf-8")
    _print_rates(measured)
    typer.echo(f"written: {plain(page)}, {plain(out / RESULTS)} and {plain(out / TABLES)}")
    return ExitCode.DONE


def _run_proxies(options: ReproduceOptions) -> ExitCode:
    """Run the experiments on proxies, whose folds and seeds are fixed."""
    for name, value, usual in (("folds", options.folds, None), ("seed", options.seed, SEED)):
        if value != usual:
            raise SchemaError(
                f"--{name} is fixed for {PROXIES}: got {value}; expected none; omit --{name}"
            )
    return reproduce_proxies(quick=options.quick, jobs=options.jobs, out=options.out)


def _settings(run: Run, people: DatasetPeople) -> dict[str, object]:
    """Return everything that the results depend on; the journal refuses other settings."""
    return {
        "data set": run.protocol.dataset,
        "kind": "quick" if run.protocol.quick else "full",
        "checksum of the rows": people.checksum,
        "protocol": run.protocol.digest,
        "seed": run.seed,
        "version of FETA": version("feta-fair"),
    }


def _print_rates(measured: Measurements) -> None:
    """Print the main rates; the files have all figures."""
    typer.echo(f"\n{'percent, mean over folds':32} accuracy   flip     CE   vote")
    for variant in ("", "raw."):
        for arm, vote in SHOWN:
            keys = [f"{variant}{arm}.{rate}" for rate in ("accuracy", "flip_rate", "ce_rate")]
            keys.append(f"{variant}{vote}.accuracy")
            if keys[0] in measured.figures:
                means = [_mean(measured.figures[key]) for key in keys]
                title = ARMS[arm] + (", unscaled" if variant else "")
                typer.echo(f"{title:32} {'  '.join(f'{mean:6.2f}' for mean in means)}")
    typer.echo()


def _mean(numbers: list[float]) -> float:
    return sum(numbers) / len(numbers)
