"""The command `feta reproduce`; heavy modules are imported when it runs."""

from pathlib import Path
from typing import Annotated

import typer

# With this seed the majority class of German credit varies over folds as in the paper (1.79).
SEED = 123

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def reproduce(
    dataset: Annotated[str, typer.Argument(help="german, adult (UCI), ipums, law; or proxies.")],
    folds: Annotated[int | None, typer.Option(help="Number of folds to run, out of five.")] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Few rows and epochs: a test that everything runs.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the folds and of all training.")] = SEED,
    jobs: Annotated[int, typer.Option(min=1, help="Worker processes.")] = 2,
    out: Annotated[
        Path | None, typer.Option(help="Folder for results.json, the page, and the networks.")
    ] = None,
) -> int:
    """Repeat the paper's experiments.

    The figures are compared with those of the paper. "proxies" measures instead what dropped
    columns, votes and fair training leave of a discrimination; its folds and seeds are fixed.

    An interrupted run resumes: give the same command again.
    """
    from feta_paper.reproduce import ReproduceOptions, run_reproduce  # noqa: PLC0415 - heavy

    return run_reproduce(ReproduceOptions(dataset, folds, quick, seed, jobs, out))
