"""The rows that a counted model will evaluate: their number first, then progress and time left."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import numpy as np

from feta.arrays import Matrix
from feta.cli.notices import notice
from feta.cli.progress import progress_bar
from feta.io.sanitize import plain
from feta.readers.check_reading import admit
from feta.readers.load import LoadedModel
from feta.report.words import duration
from feta.scorer.counted.counted import Counted
from feta.scorer.counted.options import CountingProgress
from feta.space.attribute import Derived


@contextmanager
def counted_progress(loaded: LoadedModel, *, jobs: int = 1) -> Iterator[None]:
    """Print how many rows a counted model evaluates, and show its progress; else do nothing.

    Workers have their own counters, so that only the number is printed for them.
    """
    scorer = loaded.model.scorer
    if not isinstance(scorer, Counted) or not loaded.model.relation.finite:
        yield  # the numbers of similar people differ
        return
    people = _people(loaded)
    n_rows = scorer.expect(people, loaded.model.relation)
    calls = scorer.evaluator.calls
    seconds_per_row = calls.seconds_per_row
    if seconds_per_row is None:
        seconds_per_row = calls.seconds / max(1, calls.rows)
    time = duration(seconds_per_row * n_rows / jobs)
    notice(
        f"{plain(scorer.name)} will evaluate about {n_rows:,} rows, repetitions included: "
        f"{len(people):,} different people with {loaded.model.relation.size:,} counterparts each; "
        f"this takes about {time}; reading it took {calls.rows:,} rows before"
    )
    before, options = calls.rows, calls.options
    with progress_bar() as progress:
        task = progress.add_task("rows evaluated by the model", total=n_rows)

        def advance(rows: CountingProgress) -> None:
            progress.update(task, completed=min(rows.rows - before, n_rows))

        show: Callable[[CountingProgress], None] = advance if jobs == 1 else options.progress
        calls.options = replace(options, progress=show)
        try:
            yield
        finally:
            calls.options = options


def _people(loaded: LoadedModel) -> Matrix:
    """Return everybody in the table who can be read, without duplicates of what is shared."""
    model, table = loaded.model, loaded.table
    assert table is not None
    names = {a.name for a in model.space.attributes if not isinstance(a, Derived)}
    seen: dict[bytes, Matrix] = {}
    for chunk in table.chunks(names, typed=loaded.formats):
        people, _ = chunk.encode_good(model.space, admit=partial(admit, loaded))
        relation = model.relation
        whole = [row.tobytes() for row in people]
        keys = relation.keys(people) if relation.has_key else whole
        seen |= {key: people[row] for row, key in enumerate(keys) if key not in seen}
    rows = [np.zeros((0, model.space.width)), *(person[None, :] for person in seen.values())]
    return np.concatenate(rows)
