"""`feta reproduce`: the paper's protocol on one data set, and its figures beside ours."""

import shlex
import sys
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import typer

from feta.cli.exit_code import ExitCode
from feta.cli.output_path import check_folder
from feta.cli.progress import progress_bar
from feta.cli.signals import terminable
from feta.errors import SchemaError
from feta.io.sanitize import plain
from feta.train.ensemble_stack import import_torch
from feta_paper.fold import people_of
from feta_paper.gather import gather
from feta_paper.journal import RunJournal
from feta_paper.markdown import markdown
from feta_paper.measurements import Measurements
from feta_paper.page import write_page
from feta_paper.protocol import FOLDS, protocol_of
from feta_paper.run import Run, carry_out
from feta_paper.tables import ARMS

JOURNAL, RESULTS, TABLES = "journal.sqlite", "results.json", "reproduction.md"

# Folds of a quick run, where none are asked for.
QUICK_FOLDS = 2


@dataclass(frozen=True, slots=True)
class ReproduceOptions:
    """What the user asked for."""

    dataset: str
    folds: int | None
    quick: bool
    seed: int
    jobs: int
    out: Path | None


def run_reproduce(options: ReproduceOptions) -> ExitCode:
    """Run the protocol, or what is left of it; an interruption keeps what is done."""
    protocol = protocol_of(options.dataset, quick=options.quick)
    folds = options.folds
    if folds is None:
        folds = QUICK_FOLDS if options.quick else FOLDS
    if not 1 <= folds <= FOLDS:
        raise SchemaError(f"--folds must be from 1 to {FOLDS}, got {folds}")
    out = options.out or Path(f"reproduction-{options.dataset}{'-quick' * options.quick}")
    check_folder(out)
    import_torch()  # better missed now than in a worker
    people = people_of(protocol.dataset, protocol.rows, options.seed)  # before any folder is made
    out.mkdir(parents=True, exist_ok=True)
    run = Run(protocol, options.seed, out, folds)
    settings = {
        "data set": protocol.dataset,
        "kind": "quick" if options.quick else "full",
        "checksum of the rows": people.checksum,
        "protocol": protocol.digest,
        "seed": options.seed,
        "version of FETA": version("feta-fair"),
    }
    with RunJournal(out / JOURNAL, settings) as journal:
        if journal.set_aside is not None:
            typer.echo(
                "note: the journal was damaged or written by another version: it was renamed to "
                f"{plain(journal.set_aside)}, and none of it is used; all steps start again; "
                "no further action is needed",
                err=True,
            )
        if journal.new:
            run.tidy()  # what a run with a deleted journal kept on its way is another run's
        typer.echo(
            f"{people.dataset.title}: {len(people.rows):,} rows, {folds} fold{'s' * (folds > 1)}, {people.dataset.space.lattice.size:,} counterparts a person"
        )
        try:
            _watched(run, journal, options.jobs)
        except KeyboardInterrupt:
            again = shlex.join(["feta", *sys.argv[1:]])
            typer.echo(f"what is done is kept in {plain(out)}; go on with: {again}", err=True)
            raise
        measured = gather(run, journal)
    measured.write(out / RESULTS)
    page = write_page(measured, out)
    (out / TABLES).write_text(markdown(measured), encoding="utf-8")
    _show(measured)
    typer.echo(f"written: {plain(page)}, {plain(out / RESULTS)} and {plain(out / TABLES)}")
    return ExitCode.DONE


def _watched(run: Run, journal: RunJournal, jobs: int) -> None:
    with terminable(), progress_bar() as bar:
        task = bar.add_task("starting", total=1.0)

        def watch(share: float, now: str) -> None:
            bar.update(task, completed=share, description=now or "done")

        carry_out(run, journal, jobs=jobs, watch=watch)


# Networks, and the vote of each.
SHOWN = (("nn_b", "vote"), ("trained", "trained_vote"), ("default", "default_vote"), ("span", "span_vote"))  # fmt: skip


def _show(measured: Measurements) -> None:
    """Print the table that matters most; the rest is in the files."""
    typer.echo(f"\n{'in per cent, mean over folds':32} accuracy   flip     CE   vote")
    for variant in ("", "raw."):
        for arm, vote in SHOWN:
            keys = [f"{variant}{arm}.{one}" for one in ("accuracy", "flip_rate", "ce_rate")]
            keys.append(f"{variant}{vote}.accuracy")
            if keys[0] in measured.figures:
                cells = [_mean(measured.figures[key]) for key in keys]
                named = ARMS[arm] + (", unscaled" if variant else "")
                typer.echo(f"{named:32} {'  '.join(f'{one:6.2f}' for one in cells)}")
    typer.echo()


def _mean(numbers: list[float]) -> float:
    return sum(numbers) / len(numbers)
