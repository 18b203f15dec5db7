"""A run in the terminal: progress, interruptions, and what a damaged journal means."""

import shlex
import sys

import typer

from feta.cli.progress import progress_bar
from feta.cli.signals import terminable
from feta.io.sanitize import plain
from feta_paper.journal import RunJournal
from feta_paper.run import Work, carry_out

JOURNAL, RESULTS = "journal.sqlite", "results.json"


def carry_out_resumably(run: Work, journal: RunJournal, jobs: int) -> None:
    """Run what the journal does not have; an interruption says how to resume."""
    note = journal.damage_note("steps")
    if note:
        typer.echo(f"note: {note}", err=True)
    if journal.new:
        run.tidy()  # checkpoints are of another run, whose journal was deleted
    try:
        _show_progress(run, journal, jobs)
    except KeyboardInterrupt:
        command = shlex.join(["feta", *sys.argv[1:]])
        typer.echo(
            f"finished steps are saved in {plain(run.folder)}; resume with: {command}", err=True
        )
        raise


def _show_progress(run: Work, journal: RunJournal, jobs: int) -> None:
    with terminable(), progress_bar() as bar:
        task = bar.add_task("starting", total=1.0)

        def watch(share: float, current: str) -> None:
            bar.update(task, completed=share, description=current or "done")

        carry_out(run, journal, jobs=jobs, watch=watch)
