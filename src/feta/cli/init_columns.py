"""Attributes of a first schema, inferred from the columns of a table."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from feta.absorb.encoders import attribute_of
from feta.absorb.known_values import KnownValues
from feta.cli.init_table import Known, decimal_comma
from feta.cli.progress import progress_bar
from feta.errors import DomainError, SchemaError
from feta.io.cell_text import comma_hint, parse_number
from feta.io.oddities import oddities
from feta.io.sanitize import listed, plain
from feta.io.table_file import TableFile
from feta.space.attribute import Attribute, Categorical, Derived
from feta.space.feature_space import FeatureSpace
from feta.space.infer_schema import FILL, ColumnSummary


def infer_space(
    table: TableFile, names: list[str], sensitive: list[str], known: Known, *, pipeline: bool
) -> tuple[FeatureSpace, list[str], TableFile]:
    """Infer every column; return the space, notes, and the table as it must be read."""
    summaries = _summarize(table, names, missing=pipeline)
    attributes: list[Attribute] = []
    notes: list[str] = []
    for name in names:
        with _located(name, table.path):
            attribute = summaries[name].attribute(sensitive=name in sensitive)
            if name in known:
                values = summaries[name].values()
                attribute, encoder_notes = by_encoder(attribute, values, known[name])
                notes += encoder_notes
            attributes.append(attribute)
    commas = [a for a in attributes if isinstance(a, Categorical) and _has_commas(a)]
    columns = [attribute.name for attribute in commas if attribute.name not in known]
    options = decimal_comma(table, columns) if pipeline and table.delimiter else None
    if options is not None:
        notes.append(f"{listed(columns)}: numbers with a decimal comma; [table] declares it")
        table = TableFile(table.path, options)
        space, more, table = infer_space(table, names, sensitive, known, pipeline=pipeline)
        return space, notes + more, table
    notes += [
        f"{attribute.name!r} became a category because it contains texts such as "
        f"{attribute.values[0]!r}: write numbers with a decimal point and without thousands "
        "separators, and run this again"
        for attribute in commas
    ]
    for attribute in attributes:
        notes += oddities(attribute, summaries[attribute.name].numbers)
    return FeatureSpace(tuple(attributes)), notes, table


def _summarize(table: TableFile, names: list[str], *, missing: bool) -> dict[str, ColumnSummary]:
    """Summarize the columns over all rows, as pandas reads them."""
    summaries = {name: ColumnSummary(name, missing=missing) for name in names}
    with progress_bar() as progress:
        task = progress.add_task(f"reading {plain(table.path.name)}", total=1.0)
        for chunk in table.chunks(set(names), typed=table.formats(names)):
            chunk.check()
            assert chunk.frame is not None
            for name in names:
                with _located(name, table.path):
                    summaries[name].add(list(chunk.frame[name].astype(object)))
            progress.update(task, completed=chunk.progress)
    return summaries


def by_encoder(
    attribute: Attribute, seen: list[object] | None, known: KnownValues
) -> tuple[Attribute, list[str]]:
    """Declare a column by what the model's encoder knows; `seen` are the table's values."""
    assert not isinstance(attribute, Derived)
    if seen and all(isinstance(value, bool) for value in seen) and set(known.values) <= {0, 1}:
        return attribute, []  # the encoder stores booleans of a nullable type as numbers
    missing = attribute.missing or (known.marker is not None and not known.filled)
    declared = attribute_of(
        attribute.name, known.values, sensitive=attribute.sensitive, missing=missing
    )
    extra = None if seen is None else [value for value in seen if value not in set(known.values)]
    if declared is None or extra is None:
        return attribute, []
    if not extra:
        return declared, []
    hint = _similar_text_hint(extra, known)
    count = "1 value" if len(extra) == 1 else f"{len(extra):,} values"
    if attribute.sensitive:
        raise SchemaError(
            f"the sensitive column {attribute.name!r} contains {count} that the model's encoder "
            f"never saw in training: got {extra[0]!r}; "
            f"expected {listed([repr(value) for value in known.values])}"
            f"{hint or '; correct the table, or leave out such rows'}"
        )
    if hint:
        note = f"{attribute.name!r} contains {extra[0]!r}, which the model's encoder never saw"
        return attribute, [note + hint]
    if isinstance(declared, Categorical) and known.takes_unknown and known.as_text:
        note = (
            f"{attribute.name!r} contains {count} that the model's encoder never saw, such as "
            f"{extra[0]!r}: with other = true the schema admits them, and the model treats them "
            "as unknown"
        )
        return replace(declared, other=True), [note]
    return attribute, []


def _similar_text_hint(extra: list[object], known: KnownValues) -> str:
    """Name an unknown text that differs from a known one only in spaces or case."""
    texts = [value for value in known.values if isinstance(value, str)]
    folded = {text.casefold() for text in texts}
    for value in extra:
        if isinstance(value, str) and value.strip() in texts:
            return (
                f"; it differs from {value.strip()!r} only in spaces: run this again with --strip "
                "if your program strips them, or correct the table"
            )
        if isinstance(value, str) and value.strip().casefold() in folded:
            return f"; {value!r} differs from a known value only in case: correct the table"
    return ""


def _has_commas(attribute: Categorical) -> bool:
    """Return whether a category's values are numbers, some of them with a decimal comma."""
    texts = [value for value in attribute.values if isinstance(value, str)]
    numbers = [text for text in texts if not isinstance(parse_number(text), str)]
    commas = [text for text in texts if comma_hint(text)]
    return bool(commas) and len(commas) + len(numbers) == len(attribute.values)


@contextmanager
def _located(name: str, path: Path) -> Iterator[None]:
    """Add the file, the row and the remedy to an error about a column."""
    advice = "fill or correct it, or leave the column out (--leave-out)"
    try:
        yield
    except DomainError as error:
        if error.row is None:
            raise DomainError(f"{path}: {error}; {advice}", column=name) from None
        what = (
            error.what.partition(FILL)[0]
            .replace("got nan", "got an empty cell")
            .replace("got None", "got an empty cell")
        )
        message = f"{path}, row {error.row + 1}: {name!r} {what}; {advice}"
        raise DomainError(message, column=name, row=error.row) from None
    except SchemaError as error:
        raise SchemaError(f"{path}: {error}; {advice}") from None
