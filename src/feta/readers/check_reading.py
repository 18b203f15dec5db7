"""Comparison: FETA's reading of a model next to the model itself, on the user's own table (S7)."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from feta.arrays import Counts, Matrix
from feta.errors import DomainError
from feta.io.sanitize import plain
from feta.io.table_file import TableFile
from feta.progress import Watch, unwatched
from feta.readers.comparison import Comparison, compare
from feta.readers.load import LoadedModel
from feta.space.attribute import Categorical, Derived
from feta.space.sampling import draw_people
from feta.wider_limits import groups

if TYPE_CHECKING:
    import pandas as pd

    from feta.io.column_format import ColumnFormat

# People drawn from the schema: they hold values that the table may lack.
DRAWN_PEOPLE = 1000

# Rows of the table that are evaluated, spread over the file.
MAX_ROWS = 100_000


def drawn_from(loaded: LoadedModel) -> Matrix:
    """Draw people from all who can exist."""
    return draw_people(loaded.model.space, np.random.default_rng(0), DRAWN_PEOPLE)


def compare_drawn(loaded: LoadedModel) -> Comparison | None:
    """Compare on people drawn from the schema; None where no source can run."""
    if loaded.runtime is None:
        return None
    return compare(loaded.model, loaded.runtime, drawn_from(loaded))


def check_reading(
    loaded: LoadedModel, *, ignore_sensitive: bool = False, watch: Watch = unwatched
) -> Comparison | None:
    """Refuse to answer for a model that itself decides otherwise; return what was compared."""
    drawn = compare_drawn(loaded)
    if drawn is None:
        return None
    if loaded.table is None:
        drawn.check()
        return drawn
    compared = compare_table(loaded, loaded.table, ignore_sensitive=ignore_sensitive, watch=watch)
    compared.check()
    drawn.check()
    return compared


def compare_table(
    loaded: LoadedModel, table: TableFile, *, ignore_sensitive: bool, watch: Watch = unwatched
) -> Comparison:
    """Evaluate the user's rows, as pandas reads the file, with the user's own model."""
    runtime = loaded.runtime
    assert runtime is not None
    with watch(f"comparing {plain(table.path.name)} with the model") as done:
        rows, people = _sampled(loaded, table, done, ignore_sensitive=ignore_sensitive)
        if runtime.columns is None:
            found = compare(loaded.model, runtime, people, rows=rows.tolist())
            return replace(found, on_table=True)
        total = Comparison(runtime.name)
        for start, frame in _frames(loaded, table):
            here = np.flatnonzero((rows >= start) & (rows < start + len(frame)))
            done(0.5 + 0.5 * total.rows / max(1, len(people)))
            if here.size:
                part = frame.iloc[rows[here] - start].reset_index(drop=True)
                part = _completed(loaded, part, people[here], ignore_sensitive=ignore_sensitive)
                numbers = rows[here].tolist()
                total += compare(loaded.model, runtime, people[here], part, rows=numbers)
    if total.rows != len(people):
        message = f"{table.path}: pandas reads other rows than FETA does ({total.rows:,} of {len(people):,} were found again); look for blank lines and stray quotes"
        raise DomainError(message)
    return total


def _sampled(
    loaded: LoadedModel, table: TableFile, done: Callable[[float], None], *, ignore_sensitive: bool
) -> tuple[Counts, Matrix]:
    """Encode rows that fit the schema, at most `MAX_ROWS` of them, evenly spread over the file."""
    space = loaded.model.space
    wanted = {one.name for one in space.attributes}
    stride, rows, parts = 1, np.zeros(0, dtype=np.int64), np.zeros((0, space.width))
    for chunk in table.chunks(wanted, typed=loaded.formats):
        first = -chunk.start % stride
        picked = chunk.take(range(first, len(chunk), stride)) if stride > 1 else chunk
        people, good = picked.encode_good(
            space, ignore_sensitive=ignore_sensitive, admit=partial(admit, loaded)
        )
        rows = np.concatenate([rows, chunk.start + first + stride * np.array(good, dtype=np.int64)])
        parts = np.concatenate([parts, people])
        done(0.5 * chunk.progress)
        while len(rows) > MAX_ROWS:  # every other row from here on, and of those before
            stride *= 2
            keep = rows % stride == 0
            rows, parts = rows[keep], parts[keep]
    if ignore_sensitive:
        drawn = draw_people(space, np.random.default_rng(1), len(parts))
        hidden = space.sensitive_columns
        parts[:, hidden] = drawn[:, hidden]
    return rows, parts


def admit(loaded: LoadedModel, people: Matrix) -> None:
    """Raise for people outside the limits whom no model can decide."""
    groups(loaded.model, people)


def _frames(loaded: LoadedModel, table: TableFile) -> "Iterator[tuple[int, pd.DataFrame]]":
    """Return the table in parts, each with the number of its first row, as pandas reads the file.

    Where pandas refuses the file for a broken row, the rows that can be split are read.
    """
    assert loaded.runtime is not None
    formats = dict(loaded.formats)
    extra = [name for name in loaded.runtime.columns or () if name not in formats]
    known = {one.name for one in loaded.model.space.attributes}
    formats |= table.formats([name for name in extra if name not in known])
    if not formats:
        return
    start = 0
    try:
        for frame in table.frames(formats):
            yield start, frame
            start += len(frame)
    except DomainError:
        raise
    except (ValueError, OverflowError):
        if start:  # some parts were compared already: the file changed meanwhile
            raise
        for chunk in table.chunks(set(formats), typed=formats):
            if chunk.frame is not None:
                yield chunk.start, chunk.frame


def _completed(
    loaded: LoadedModel, frame: "pd.DataFrame", people: Matrix, *, ignore_sensitive: bool
) -> "pd.DataFrame":
    """Add the columns that the model takes and the table lacks, as they are put in for FETA, too."""
    runtime, space = loaded.runtime, loaded.model.space
    assert runtime is not None
    frame = _numeric(loaded, frame)
    known = {one.name: one for one in space.attributes}
    hidden = {
        name
        for name, one in known.items()
        if isinstance(one, Derived) or (ignore_sensitive and space.is_sensitive(one))
    }
    lacking = [
        name for name in runtime.columns or () if name in hidden or name not in frame.columns
    ]
    if not lacking:
        return frame
    made = runtime.table(people)
    if not runtime.as_frame:
        import pandas as pd  # noqa: PLC0415 - only where rows are evaluated

        made = pd.DataFrame(made, columns=list(runtime.columns or ()))
    return frame.assign(**{name: made[name] for name in lacking})


def _numeric(loaded: LoadedModel, frame: "pd.DataFrame") -> "pd.DataFrame":
    """Turn texts into numbers in columns of numbers: some row that was refused made them texts."""
    import pandas as pd  # noqa: PLC0415 - only where rows are evaluated

    for attribute in loaded.model.space.attributes:
        if isinstance(attribute, Categorical | Derived) or attribute.name not in frame.columns:
            continue
        found: ColumnFormat | None = loaded.formats.get(attribute.name)
        if found is not None and found.kind == "text":
            frame = frame.assign(**{attribute.name: pd.to_numeric(frame[attribute.name])})
    return frame
