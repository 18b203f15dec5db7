"""The work of `feta reproduce proxies`: run everything that is missing, then write the tables."""

from importlib.metadata import version
from pathlib import Path

import typer

from feta.cli.exit_code import ExitCode
from feta.cli.output_path import check_folder
from feta.io.regular_file import atomic_write
from feta.io.sanitize import plain
from feta.train.import_torch import import_torch
from feta_paper.fold import load_people
from feta_paper.gather import installed_versions
from feta_paper.journal import RunJournal
from feta_paper.proxies.proxy_results import ProxyResults
from feta_paper.proxies.proxy_run import ProxyRun
from feta_paper.proxies.proxy_tables import proxy_markdown
from feta_paper.proxies.settings import FIRST_SEED, FULL, QUICK, ProxySettings
from feta_paper.resumable import JOURNAL, RESULTS, carry_out_resumably

NAME = "proxies"
TABLES = "proxies.md"


def reproduce_proxies(*, quick: bool, jobs: int, out: Path | None) -> ExitCode:
    """Run the experiments, or the rest of them; an interruption keeps finished units."""
    settings = QUICK if quick else FULL
    folder = out or Path(f"reproduction-{NAME}{'-quick' * quick}")
    check_folder(folder)
    import_torch()  # fail now rather than in a worker
    checksums = data_checksums(settings)  # fail before the folder exists
    folder.mkdir(parents=True, exist_ok=True)
    run = ProxyRun(settings, folder)
    with RunJournal(folder / JOURNAL, _journal_settings(settings, checksums)) as journal:
        typer.echo(f"{len(run.units)} units, settings {settings.digest}")
        carry_out_resumably(run, journal, jobs)
        results = ProxyResults.of(run, journal, installed_versions() | checksums)
    results.write(folder / RESULTS)
    with atomic_write(folder / TABLES) as part:
        part.write_text(proxy_markdown(results), encoding="utf-8")
    typer.echo(f"processor time: {results.processor_seconds:.0f} s")
    typer.echo(f"written: {plain(folder / RESULTS)} and {plain(folder / TABLES)}")
    return ExitCode.DONE


def data_checksums(settings: ProxySettings) -> dict[str, str]:
    """Return the checksum of the rows of every data set."""
    merits = settings.merits
    needed = {(people.dataset, settings.rows) for people in settings.real}
    needed.add((merits.dataset, merits.rows))
    return {
        f"{rows or 'all'} rows of {name}": load_people(name, rows, FIRST_SEED).checksum
        for name, rows in sorted(needed, key=str)
    }


def _journal_settings(settings: ProxySettings, checksums: dict[str, str]) -> dict[str, object]:
    """Return everything that the results depend on; the journal refuses other settings."""
    return {
        "experiment": NAME,
        "kind": "quick" if settings.quick else "full",
        "settings": settings.digest,
        **checksums,
        "version of FETA": version("feta-fair"),
    }
