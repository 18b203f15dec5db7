"""Check of FETA's reading of a model against the model itself, on the user's table."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
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

# People drawn from the schema; they have values that the table may lack.
DRAWN_PEOPLE = 1000

# Rows of the table that are compared, evenly spaced over the file.
MAX_ROWS = 100_000


def draw_from_schema(loaded: LoadedModel) -> Matrix:
    """Draw people from the schema's space."""
    return draw_people(loaded.model.space, np.random.default_rng(0), DRAWN_PEOPLE)


def compare_drawn(loaded: LoadedModel) -> Comparison | None:
    """Compare on people drawn from the schema; None if there is no runtime."""
    if loaded.runtime is None:
        return None
    return compare(loaded.model, loaded.runtime, draw_from_schema(loaded))


def check_reading(
    loaded: LoadedModel, *, ignore_sensitive: bool = False, watch: Watch = unwatched
) -> Comparison | None:
    """Raise if the user's model decides differently; return the comparison."""
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
    """Compare on the user's rows, which the user's model reads as pandas reads the file."""
    with watch(f"comparing {plain(table.path.name)} with the model") as done:
        rows, people = _sample_rows(loaded, table, done, ignore_sensitive=ignore_sensitive)
        return _compare_rows(loaded, table, (rows, people), done, ignore_sensitive=ignore_sensitive)


@dataclass(frozen=True, slots=True)
class RowSample:
    """Every so many rows of a dataset; of a part, its first row at least.

    `before` rows are in files before the part.
    """

    stride: int
    before: int = 0

    @classmethod
    def of(cls, n_rows: int) -> "RowSample":
        """Choose at most `MAX_ROWS` rows, as for one table with so many rows."""
        stride = 1
        while -(-n_rows // stride) > MAX_ROWS:
            stride *= 2
        return cls(stride)

    def people(self, loaded: LoadedModel, *, ignore_sensitive: bool) -> tuple[Counts, Matrix]:
        """Encode the rows of a part; return their numbers in the part's file, too."""
        table, space = loaded.table, loaded.model.space
        assert table is not None
        names = {attribute.name for attribute in space.attributes}
        rows, parts = [np.zeros(0, dtype=np.int64)], [np.zeros((0, space.width))]
        for chunk in table.chunks(names, typed=loaded.formats):
            first = -(chunk.start + self.before) % self.stride
            if chunk.start == table.first_row and first >= len(chunk):
                first = 0
            selected = chunk.take(range(first, len(chunk), self.stride))
            people, good = selected.encode_good(
                space, ignore_sensitive=ignore_sensitive, admit=partial(admit, loaded)
            )
            numbers = chunk.start + first + self.stride * np.array(good, dtype=np.int64)
            rows.append(numbers)
            parts.append(people)
        together = np.concatenate(parts)
        if ignore_sensitive:
            _draw_sensitive(loaded, together)
        return np.concatenate(rows), together


def compare_part(
    loaded: LoadedModel, sample: RowSample, *, ignore_sensitive: bool
) -> Comparison | None:
    """Compare on rows of one part of a dataset; raise if the user's model decides differently."""
    if loaded.runtime is None:
        return None
    assert loaded.table is not None
    chosen = sample.people(loaded, ignore_sensitive=ignore_sensitive)
    compared = _compare_rows(
        loaded, loaded.table, chosen, _unseen, ignore_sensitive=ignore_sensitive
    )
    compared.check()
    return compared


def _unseen(_share: float) -> None:
    """Show no progress."""


def _compare_rows(
    loaded: LoadedModel,
    table: TableFile,
    chosen: tuple[Counts, Matrix],
    done: Callable[[float], None],
    *,
    ignore_sensitive: bool,
) -> Comparison:
    """Compare on chosen rows, which are given by their numbers and as people."""
    runtime, (rows, people) = loaded.runtime, chosen
    assert runtime is not None
    if runtime.columns is None:
        comparison = compare(loaded.model, runtime, people, rows=rows.tolist())
        return replace(comparison, on_table=True)
    total = Comparison(runtime.name)
    for start, frame in _frames(loaded, table):
        here = np.flatnonzero((rows >= start) & (rows < start + len(frame)))
        done(0.5 + 0.5 * total.rows / max(1, len(people)))
        if here.size:
            part = frame.iloc[rows[here] - start].reset_index(drop=True)
            part = _add_missing_columns(
                loaded, part, people[here], ignore_sensitive=ignore_sensitive
            )
            numbers = rows[here].tolist()
            total += compare(loaded.model, runtime, people[here], part, rows=numbers)
    found = total.rows + total.failed
    if found != len(people):
        raise DomainError(
            f"{table.path}: pandas and FETA read different rows: found {found:,} of "
            f"{len(people):,} compared rows in pandas' table; expected all of them; look for "
            "blank lines and stray quotes"
        )
    return total


def _sample_rows(
    loaded: LoadedModel, table: TableFile, done: Callable[[float], None], *, ignore_sensitive: bool
) -> tuple[Counts, Matrix]:
    """Encode at most `MAX_ROWS` rows that fit the schema, evenly spaced over the file."""
    space = loaded.model.space
    names = {attribute.name for attribute in space.attributes}
    stride, rows, parts = 1, np.zeros(0, dtype=np.int64), np.zeros((0, space.width))
    for chunk in table.chunks(names, typed=loaded.formats):
        first = -chunk.start % stride
        selected = chunk.take(range(first, len(chunk), stride)) if stride > 1 else chunk
        people, good = selected.encode_good(
            space, ignore_sensitive=ignore_sensitive, admit=partial(admit, loaded)
        )
        rows = np.concatenate([rows, chunk.start + first + stride * np.array(good, dtype=np.int64)])
        parts = np.concatenate([parts, people])
        done(0.5 * chunk.progress)
        while len(rows) > MAX_ROWS:  # from here on, keep every other row
            stride *= 2
            keep = rows % stride == 0
            rows, parts = rows[keep], parts[keep]
    if ignore_sensitive:
        _draw_sensitive(loaded, parts)
    return rows, parts


def _draw_sensitive(loaded: LoadedModel, people: Matrix) -> None:
    """Replace the sensitive values, which are not read, by drawn ones."""
    space = loaded.model.space
    drawn = draw_people(space, np.random.default_rng(1), len(people))
    hidden = space.sensitive_columns
    people[:, hidden] = drawn[:, hidden]


def admit(loaded: LoadedModel, people: Matrix) -> None:
    """Raise if no model covers people outside the limits."""
    groups(loaded.model, people)


def _frames(loaded: LoadedModel, table: TableFile) -> "Iterator[tuple[int, pd.DataFrame]]":
    """Yield the table in parts as pandas reads it, each with the number of its first row.

    If pandas rejects the file for a broken row, the rows that can be split are read.
    """
    assert loaded.runtime is not None
    formats = dict(loaded.formats)
    extra = [name for name in loaded.runtime.columns or () if name not in formats]
    known = {attribute.name for attribute in loaded.model.space.attributes}
    formats |= table.formats([name for name in extra if name not in known])
    if not formats:
        return
    start = table.first_row
    try:
        for frame in table.frames(formats):
            yield start, frame
            start += len(frame)
    except DomainError:
        raise
    except (ValueError, OverflowError):
        if start != table.first_row:  # some parts were already compared, so the file has changed
            raise
        for chunk in table.chunks(set(formats), typed=formats):
            if chunk.frame is not None:
                yield chunk.start, chunk.frame


def _add_missing_columns(
    loaded: LoadedModel, frame: "pd.DataFrame", people: Matrix, *, ignore_sensitive: bool
) -> "pd.DataFrame":
    """Add the columns that the model reads and the table lacks, with FETA's values for them."""
    runtime, space = loaded.runtime, loaded.model.space
    assert runtime is not None
    frame = _convert_texts(loaded, frame)
    known = {attribute.name: attribute for attribute in space.attributes}
    hidden = {
        name
        for name, attribute in known.items()
        if isinstance(attribute, Derived) or (ignore_sensitive and space.is_sensitive(attribute))
    }
    lacking = [
        name for name in runtime.columns or () if name in hidden or name not in frame.columns
    ]
    if not lacking:
        return frame
    complete = runtime.table(people)
    if not runtime.as_frame:
        import pandas as pd  # noqa: PLC0415 - only if rows are evaluated

        complete = pd.DataFrame(complete, columns=list(runtime.columns or ()))
    return frame.assign(**{name: complete[name] for name in lacking})


def _convert_texts(loaded: LoadedModel, frame: "pd.DataFrame") -> "pd.DataFrame":
    """Convert texts to numbers in columns of numbers: a rejected row made pandas read texts."""
    import pandas as pd  # noqa: PLC0415 - only if rows are evaluated

    for attribute in loaded.model.space.attributes:
        if isinstance(attribute, Categorical | Derived) or attribute.name not in frame.columns:
            continue
        column_format: ColumnFormat | None = loaded.formats.get(attribute.name)
        if column_format is not None and column_format.kind == "text":
            frame = frame.assign(**{attribute.name: pd.to_numeric(frame[attribute.name])})
    return frame
