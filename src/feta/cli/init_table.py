"""Table options of a first schema, inferred from the encoders of a fitted model."""

from collections.abc import Collection, Mapping
from dataclasses import replace

from feta.absorb.known_values import KnownValues
from feta.io.table_file import TableFile
from feta.io.table_options import TableOptions

Known = Mapping[str, KnownValues]

# Texts per chunk that are compared with boolean words; a column of booleans has fewer.
MAX_TEXTS = 8

# Pairs of texts that programs read as booleans with true_values and false_values.
TRUTHS = (("yes", "no"), ("y", "n"), ("t", "f"), ("on", "off"))

# Texts that tables contain instead of an empty cell, and that pandas does not read as missing.
MARKS = ("?", "-", "--", ".", "*", "missing", "unknown", "not available", "n.a.", "none", "nil")


def options_for(table: TableFile, known: Known, names: Collection[str]) -> TableOptions:
    """Return options by which the table's values get the types that the encoders know."""
    options = _with_missing_texts(table.options, known, names)
    options = _with_boolean_words(TableFile(table.path, options), known)
    options = _with_missing_marks(TableFile(table.path, options), known)
    formats = TableFile(table.path, options).formats([name for name in names if name in known])
    texts = {
        name: "str"
        for name, values in known.items()
        if values.as_text and name in formats and formats[name].kind != "text"
    }
    return replace(options, dtype={**options.dtype, **texts})


def _with_boolean_words(table: TableFile, known: Known) -> TableOptions:
    """Read "yes" and "no" as booleans if an encoder knows booleans in that column."""
    names = [
        name
        for name, values in known.items()
        if values.values and all(isinstance(value, bool) for value in values.values)
    ]
    texts = {name: form for name, form in table.formats(names).items() if form.kind == "text"}
    trues, falses = set(table.options.true_values), set(table.options.false_values)
    seen = {name: set[str]() for name in texts}
    for frame in table.frames(texts) if texts else ():
        for name in texts:
            seen[name] |= set(frame[name].dropna().unique().tolist()[:MAX_TEXTS])
    for words in seen.values():
        for yes, no in TRUTHS:
            if words and {word.lower() for word in words} <= {yes, no}:
                trues |= {word for word in words if word.lower() == yes}
                falses |= {word for word in words if word.lower() == no}
    return replace(
        table.options, true_values=tuple(sorted(trues)), false_values=tuple(sorted(falses))
    )


def _with_missing_marks(table: TableFile, known: Known) -> TableOptions:
    """Read a mark such as "?" as missing if an encoder knows missing cells but not the mark."""
    names = [
        name
        for name, values in known.items()
        if values.as_text and (values.marker == "NaN" or values.filled)
    ]
    columns = {name: form for name, form in table.formats(names).items() if form.kind == "text"}
    marks_by_column: dict[str, set[str]] = {name: set() for name in columns}
    for frame in table.frames(columns) if columns else ():
        for name in columns:
            texts = [text for text in frame[name].dropna().unique() if isinstance(text, str)]
            marks = {text for text in texts if text.strip().lower() in MARKS}
            marks_by_column[name] |= marks - set(known[name].values)
    added = {name: tuple(sorted(marks)) for name, marks in marks_by_column.items() if marks}
    if not added:
        return table.options
    values = table.options.na_values
    before = dict(values) if isinstance(values, Mapping) else dict.fromkeys(table.names, values)
    merged = {name: (*before.get(name, ()), *added.get(name, ())) for name in {*before, *added}}
    na_values = {name: merged[name] for name in sorted(merged) if merged[name]}
    return replace(table.options, na_values=na_values)


def _with_missing_texts(
    options: TableOptions, known: Known, names: Collection[str]
) -> TableOptions:
    """Keep texts that pandas reads as missing, such as "NA", if an encoder knows them."""
    texts = {name: _read_as_missing(values) for name, values in known.items()}
    if not any(texts.values()):
        return options
    empty = {name for name, missing in texts.items() if "" in missing}
    if not empty:
        return replace(options, keep_default_na=False, na_values=("",))
    others = {name: ("",) for name in names if name not in empty}
    return replace(options, keep_default_na=False, na_values=others)


def _read_as_missing(known: KnownValues) -> list[str]:
    """Return the texts that an encoder knows and that pandas reads as missing by default."""
    texts = [value for value in known.values if isinstance(value, str)]
    if not texts:
        return []
    cells = TableOptions().frame({"value": texts}, {"value": "str"})["value"]
    return [text for text, missing in zip(texts, cells.isna(), strict=True) if missing]


def decimal_comma(table: TableFile, columns: Collection[str]) -> TableOptions | None:
    """Return options with a decimal comma, if all these columns are then numbers."""
    options = replace(table.options, decimal=",")
    formats = TableFile(table.path, options).formats(columns)
    numbers = all(form.kind in ("integer", "number") for form in formats.values())
    return options if columns and numbers else None
